"""Questions of the conformance tests, and the client that sends their requests to a
chosen broker."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka.errors import for_code
from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.api_header import ResponseClassRegistry
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from urteil.harness.conformance.environment import Channel, Environment

GROUP, TRANSACTIONAL_ID = 0, 1
SPREADS_S, POLL_S = 3.0, 0.05
"""The time for a change to spread from one broker to another."""
BrokerAnswer = tuple[int, str]
"""A broker and its answer, as text."""


class PreconditionFailed(Exception):
    """A request that the question needs first failed; the message has its name and error."""


class Brokers:
    """All brokers by id. Each request has a connection of its own."""

    def __init__(
        self, addresses: Sequence[str], timeout_s: float, environment: Environment
    ) -> None:
        """Raises OSError if a broker does not respond."""
        self.environment = environment
        self._timeout_s = timeout_s
        self._addresses: dict[int, str] = {}
        for address in addresses:
            for broker in self._send_to(address, _metadata_request()).brokers:
                if f"{broker.host}:{broker.port}" == address:
                    self._addresses[broker.node_id] = address

    @property
    def nodes(self) -> list[int]:
        return sorted(self._addresses)

    def send(self, node: int, request: Any, client_id: str = "examiner") -> Any:
        """Send a request to one broker and return the response. OSError without one in time."""
        return self._send_to(self._addresses[node], request, client_id)

    def answers_after(self, node: int, request: Any) -> bool:
        """Send a request without response and a Metadata request. Whether the first response
        belongs to the latter. OSError if the broker closes the connection."""
        frames = [_frame(request, 1), _frame(_metadata_request(), 2)]
        with closing(self._connect(self._addresses[node])) as connection:
            data = connection.call(b"".join(frames))
        return bool(struct.unpack_from(">i", data)[0] == 2)

    def raw(self, node: int, frame: bytes) -> bytes:
        """Send a complete frame. Returns the response without its size. OSError without one."""
        with closing(self._connect(self._addresses[node])) as connection:
            return connection.call(frame)

    def order(self, node: int, requests: Sequence[Any]) -> list[int]:
        """Send several requests at once. Returns their numbers in the order of the responses."""
        frames = [_frame(request, number) for number, request in enumerate(requests)]
        with closing(self._connect(self._addresses[node])) as connection:
            return [struct.unpack_from(">i", data)[0] for data in connection.call_all(frames)]

    def throttled_ms(self, node: int, client_id: str) -> int:
        """The throttle time of a response to this client."""
        return int(self.send(node, _metadata_request(), client_id).throttle_time_ms)

    def _send_to(self, address: str, request: Any, client_id: str = "examiner") -> Any:
        with closing(self._connect(address)) as connection:
            data = connection.call(_frame(request, 1, client_id))
        return ResponseClassRegistry.get_response_class(request.header).decode(data, header=True)

    def _connect(self, address: str) -> Channel:
        return self.environment.connect(address, self._timeout_s)

    def metadata(self, node: int, topic: str, version: int = 7) -> Any:
        """The metadata of one topic at one broker."""
        (result,) = self.send(node, _metadata_request(topic, version=version)).topics
        return result

    @property
    def controller(self) -> int:
        response = self.send(self.nodes[0], _metadata_request()).controller_id
        if response not in self._addresses:
            raise PreconditionFailed(f"no controller but {response}")
        return int(response)

    def coordinator(self, key: str, kind: int = GROUP) -> int:
        """The coordinator of a group or a transactional id."""
        request = FindCoordinatorRequest[2](key=key, key_type=kind)
        response = self.send(self.nodes[0], request)
        check("FindCoordinator", response.error_code)
        return int(response.node_id)

    def create(self, topic: str, replicas: Sequence[Sequence[int]], **config: Any) -> None:
        """Create a topic with these replicas, and wait until every broker reports all of them in
        sync."""
        kinds = CreateTopicsRequest
        given = [
            kinds.CreatableTopic.CreatableReplicaAssignment(partition_index=p, broker_ids=ids)
            for p, ids in enumerate(replicas)
        ]
        check("CreateTopics", self.create_errors(topic, assignments=given, **config)[0])
        expected = str([sorted(ids) for ids in replicas])
        _, result = by_all(self, lambda node: str(self._in_sync(node, topic)), expected)
        if result != expected:
            raise PreconditionFailed(
                f"{result} instead of {expected} are in sync of a topic that was made"
            )

    def _in_sync(self, node: int, topic: str) -> list[list[int]]:
        results = sorted(
            self.metadata(node, topic).partitions, key=lambda partition: partition.partition_index
        )
        return [sorted(result.isr_nodes) for result in results]

    def create_errors(
        self,
        topic: str,
        *,
        partitions: int = -1,
        replication: int = -1,
        assignments: Sequence[Any] = (),
        validate: bool = False,
        **config: Any,
    ) -> list[int]:
        """The error of a topic's creation. Underscores in names of settings become dots."""
        kinds = CreateTopicsRequest.CreatableTopic
        configs = [
            kinds.CreatableTopicConfig(name=name.replace("_", "."), value=value)
            for name, value in config.items()
        ]
        entry_request = kinds(
            name=topic, num_partitions=partitions, replication_factor=replication,
            assignments=list(assignments), configs=configs,
        )  # fmt: skip
        request = CreateTopicsRequest[4](
            topics=[entry_request], timeout_ms=5_000, validate_only=validate
        )
        return [topic.error_code for topic in self.send(self.controller, request).topics]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`ask` gets an unused name, and returns a broker and its answer; `answer` is the right one. It
    may be repeated with another name. `unsimulated` is the reason why suites/simulation cannot put
    it, or empty."""

    about: str
    answer: str
    ask: Callable[[Brokers, str], tuple[int, str]]
    unsimulated: str = ""


def name_of(code: int) -> str:
    """The name of an error in kafka-python, `No` for none."""
    return str(for_code(code).__name__).removesuffix("Error")


def check(what: str, code: int) -> None:
    """Raises PreconditionFailed for an error."""
    if code:
        raise PreconditionFailed(f"{what}: {name_of(code)}")


def names(codes: Iterable[int]) -> str:
    return ", ".join(name_of(code) for code in codes)


def await_value(
    brokers: Brokers,
    read: Callable[[], str],
    answer: str,
    *,
    deadline_s: float = SPREADS_S,
    poll_s: float = POLL_S,
) -> str:
    """Read until the value is `answer` or the time is over. Returns the last value."""
    return brokers.environment.until(
        read, lambda value: value == answer, deadline_s=deadline_s, poll_s=poll_s
    )


def by_all(brokers: Brokers, read: Callable[[int], str], answer: str) -> tuple[int, str]:
    """Read from every broker. Returns the first broker whose value stays different, else the last
    one."""
    for node in brokers.nodes:
        result = await_value(brokers, partial(read, node), answer)
        if result != answer:
            break
    return node, result


def _frame(request: Any, correlation: int, client_id: str = "examiner") -> bytes:
    request.with_header(correlation_id=correlation, client_id=client_id)
    return bytes(request.encode(header=True, framed=True))


def _metadata_request(*topics: str, version: int = 7) -> Any:
    """A Metadata request for these topics, which creates none."""
    requests = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest[version](topics=requests, allow_auto_topic_creation=False)
