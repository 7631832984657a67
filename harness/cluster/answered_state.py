"""The cluster's state in its brokers' responses: for an external cluster with KRaft.

The lab cannot read its controllers' disks. It sends requests to every broker directly. A broker
that is cut off may return an outdated state, so for a partition the response with the highest
leader epoch counts, and a broker is present if all responses list it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from operator import not_
from typing import Any, NoReturn

from kafka.errors import for_code
from kafka.protocol.admin import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kazoo.client import KazooClient

from urteil.chaos.observations import LabFailure, PartitionView
from urteil.chaos.parallel import run_on_all
from urteil.chaos.waiting import until
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.message_schema import encode_uuid

TIMEOUT_S, TIMEOUT_MS, POLL_S = 2.0, 2_000, 0.1
QUORUM = "__cluster_metadata"
TOPIC, BROKER = 2, 4
"""Kinds of resources with settings."""
OF_TOPIC, OF_ALL_BROKERS = 1, 3
"""Sources of a setting (KIP-226): set for the topic, set for all brokers while they run."""
EXACT, DEFAULT = 0, 1
"""The ways to match an entity of quotas (KIP-546)."""


class AnsweredState:
    """Implements `ClusterState`. `brokers` are addresses past all proxies, by name; each name is b
    and the broker's id."""

    def __init__(self, brokers: Mapping[str, str]) -> None:
        self._brokers = brokers
        self.lacks: frozenset[str] = frozenset()

    @property
    def client(self) -> KazooClient:
        raise LabFailure("this cluster has no ZooKeeper: its metadata is KRaft's")

    def start(self, *, deadline_s: float) -> None:
        """Wait for a response that names the quorum's leader; LabFailure on the deadline."""
        if why := until(self._describe_silence, not_, deadline_s=deadline_s, poll_s=POLL_S):
            raise LabFailure(why)

    def close(self) -> None:
        """Does nothing: every request has a connection of its own."""

    def registered_brokers(self) -> dict[str, int | None]:
        listed = [{row.node_id for row in answer.brokers} for answer in self._metadata().values()]
        return {f"b{number}": None for number in sorted(set.intersection(*listed))}

    def controller(self) -> str | None:
        leader = self._quorum().leader_id
        if leader < 0:
            return None
        return f"b{leader}" if f"b{leader}" in self._brokers else f"q{leader}"

    def voters(self) -> dict[str, str]:
        return {}

    def controller_epoch(self) -> int:
        return int(self._quorum().leader_epoch)

    def registrations(self) -> dict[str, dict[str, Any]]:
        _not_answered("registrations in ZooKeeper's form")

    def cluster_id(self) -> str:
        return str(next(iter(self._metadata().values())).cluster_id)

    def topics(self) -> list[str]:
        answers = self._metadata().values()
        return sorted({topic.name for answer in answers for topic in answer.topics})

    def topic_id(self, topic: str) -> str | None:
        rows = self._topic_rows(topic).values()
        return next((encode_uuid(row.topic_id) for row in rows), None)

    def partitions(self, topic: str) -> list[PartitionView]:
        newest: dict[int, tuple[tuple[int, bool], Any]] = {}
        for node, row in self._topic_rows(topic).items():
            for partition in row.partitions:
                number = partition.partition_index
                age = (partition.leader_epoch, f"b{partition.leader_id}" == node)
                if number not in newest or age > newest[number][0]:
                    newest[number] = age, partition
        return [_view(topic, newest[number][1]) for number in sorted(newest)]

    def topic_config(self, topic: str) -> dict[str, str]:
        return self._settings(TOPIC, topic, OF_TOPIC)

    def broker_defaults(self) -> dict[str, str]:
        return self._settings(BROKER, "", OF_ALL_BROKERS)

    def client_quotas(self, client: str | None) -> dict[str, str]:
        kind = DEFAULT if client is None else EXACT
        component = DescribeClientQuotasRequest.ComponentData(
            entity_type="client-id", match_type=kind, match=client
        )
        request = DescribeClientQuotasRequest[1](components=[component], strict=True)
        entries = self._request_any(request, DescribeClientQuotasResponse).entries or ()
        return {value.key: f"{value.value:g}" for entry in entries for value in entry.values}

    def is_reassigning(self, topic: str) -> bool:
        request = ListPartitionReassignmentsRequest[0](timeout_ms=TIMEOUT_MS, topics=None)
        answer = self._request_any(request, ListPartitionReassignmentsResponse)
        return any(row.name == topic for row in answer.topics)

    def is_being_deleted(self, topic: str) -> bool:
        """Always false: KRaft deletes a topic at once."""
        return False

    def is_deleted(self, topic: str) -> bool:
        return not self._topic_rows(topic)

    def _describe_silence(self) -> str:
        try:
            return "" if self.controller() else "the quorum has no leader"
        except LabFailure as failure:
            return str(failure)

    def _quorum(self) -> Any:
        topic = DescribeQuorumRequest.TopicData
        log = topic(topic_name=QUORUM, partitions=[topic.PartitionData(partition_index=0)])
        request = DescribeQuorumRequest[1](topics=[log])
        answer = self._request_any(request, DescribeQuorumResponse)
        return answer.topics[0].partitions[0]

    def _settings(self, kind: int, name: str, source: int) -> dict[str, str]:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=None
        )
        request = DescribeConfigsRequest[4](resources=[resource])
        (result,) = self._request_any(request, DescribeConfigsResponse).results
        return {row.name: row.value for row in result.configs if row.config_source == source}

    def _topic_rows(self, topic: str) -> dict[str, Any]:
        """The responses of the brokers that know a topic."""
        return {
            node: row
            for node, answer in self._metadata().items()
            for row in answer.topics
            if row.name == topic
        }

    def _metadata(self) -> dict[str, Any]:
        """The responses of all reachable brokers. LabFailure if there is none."""
        request = MetadataRequest[12](topics=None, allow_auto_topic_creation=False)
        frame = _frame(request)
        answers = run_on_all(lambda address: _request(address, frame), self._brokers.values())
        pairs = list(zip(self._brokers, answers, strict=True))
        known = {
            node: MetadataResponse.decode(answer, version=12, header=True)
            for node, answer in pairs
            if isinstance(answer, bytes)
        }
        if not known:
            raise _no_answer(answer for _, answer in pairs)
        return known

    def _request_any(self, request: Any, response: Any) -> Any:
        """The first response without an error, in the version of the request."""
        frame = _frame(request)
        refusals: list[object] = []
        for node, address in self._brokers.items():
            answer = _request(address, frame)
            if isinstance(answer, bytes):
                decoded = response.decode(answer, version=request.API_VERSION, header=True)
                if not (code := _error_code(decoded)):
                    return decoded
                refusals.append(f"{node}: {for_code(code).__name__}")
            else:
                refusals.append(answer)
        raise _no_answer(refusals)


def _request(address: str, frame: bytes) -> bytes | OSError:
    """A broker's response without its size, or the reason for its absence."""
    try:
        with closing(Connection(address, TIMEOUT_S)) as connection:
            return connection.call(frame)
    except OSError as failure:
        return failure


def _frame(request: Any) -> bytes:
    request.with_header(correlation_id=1, client_id="urteil-state")
    return bytes(request.encode(header=True, framed=True))


def _error_code(answer: Any) -> int:
    """The first error of a response, 0 without one; each kind of response has it in another
    field."""
    if isinstance(answer, DescribeConfigsResponse):
        return int(answer.results[0].error_code)
    if isinstance(answer, DescribeQuorumResponse) and not answer.error_code:
        return int(answer.topics[0].partitions[0].error_code)
    return int(answer.error_code)


def _no_answer(reasons: Iterable[object]) -> LabFailure:
    return LabFailure(f"no broker answers: {'; '.join(map(str, reasons))}")


def _not_answered(what: str) -> NoReturn:
    raise LabFailure(f"brokers of a cluster with KRaft do not answer {what}")


def _view(topic: str, row: Any) -> PartitionView:
    return PartitionView(
        topic=topic,
        partition=row.partition_index,
        leader=f"b{row.leader_id}" if row.leader_id >= 0 else None,
        leader_epoch=row.leader_epoch,
        isr=tuple(f"b{number}" for number in row.isr_nodes),
        replicas=tuple(f"b{number}" for number in row.replica_nodes),
    )
