"""The cluster's state in ZooKeeper, read past all proxies."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.interfaces import IAsyncResult
from kazoo.retry import KazooRetry

from urteil.chaos.capabilities import REASSIGNMENT, TOPIC_IDS
from urteil.chaos.observations import LabFailure, PartitionView
from urteil.harness.cluster.administration.admin_znodes import REASSIGN
from urteil.harness.evidence.readers.zookeeper_log import made_topic_id

Value = TypeVar("Value")

ANSWER_S = 5.0
PAUSES = {"delay": 0.1, "backoff": 1, "max_jitter": 0.0}
"""Between two connections; kazoo's jitter multiplies up, and without backoff soon to nothing."""


class ZooKeeperState:
    """Reads znodes through a session of the lab's own. Raises LabFailure when ZooKeeper does not
    answer. `lacks` names the capabilities that the brokers do not have, once they are known."""

    def __init__(self, hosts: str) -> None:
        self.lacks: frozenset[str] = frozenset()
        retry = KazooRetry(max_tries=-1, **PAUSES)
        self.client = KazooClient(
            hosts=hosts, timeout=10.0, connection_retry=retry, logger=_silent_logger()
        )
        self._started = False

    def start(self, *, deadline_s: float) -> None:
        """Connect; LabFailure on the deadline."""
        try:
            self.client.start(timeout=deadline_s)
            self._started = True
        except KazooTimeoutError as error:
            raise LabFailure(f"no ZooKeeper session within {deadline_s:g} s") from error

    def close(self) -> None:
        self.client.stop()
        self.client.close()

    def registered_brokers(self) -> dict[str, int | None]:
        """Brokers in `/brokers/ids`, each with the zxid of its registration."""
        return {node: stat.czxid for node, (_, stat) in self._registrations().items()}

    def controller(self) -> str | None:
        znode = self._read_paths(["/controller"])[0]
        return None if znode is None else f"b{json.loads(znode[0])['brokerid']}"

    def voters(self) -> dict[str, str]:
        return {}

    def controller_epoch(self) -> int:
        """The number of controllers so far; 0 before the first."""
        znode = self._read_paths(["/controller_epoch"])[0]
        return 0 if znode is None else int(znode[0])

    def registrations(self) -> dict[str, dict[str, Any]]:
        """The registration of each broker in `/brokers/ids`."""
        return {node: json.loads(data) for node, (data, _) in self._registrations().items()}

    def cluster_id(self) -> str:
        znode = self._read_paths(["/cluster/id"])[0]
        return "" if znode is None else str(json.loads(znode[0])["id"])

    def topics(self) -> list[str]:
        return sorted(self._children("/brokers/topics"))

    def topic_id(self, topic: str) -> str | None:
        """The topic id in Kafka's base64 form; None if the topic does not exist. For brokers
        without topic ids, the lab derives one from the znode's creation."""
        znode = self._read_paths([f"/brokers/topics/{topic}"])[0]
        if znode is None:
            return None
        if TOPIC_IDS.name in self.lacks:
            return made_topic_id(topic, znode[1].czxid)
        topic_id: str | None = json.loads(znode[0]).get("topic_id")
        return topic_id

    def partitions(self, topic: str) -> list[PartitionView]:
        """All partitions of a topic in order; empty when there is no such topic."""
        znode = self._read_paths([f"/brokers/topics/{topic}"])[0]
        if znode is None:
            return []
        assigned = json.loads(znode[0])["partitions"]
        numbers = sorted(int(number) for number in assigned)
        paths = [f"/brokers/topics/{topic}/partitions/{number}/state" for number in numbers]
        return [
            _view(topic, number, assigned[str(number)], state)
            for number, state in zip(numbers, self._read_paths(paths), strict=True)
        ]

    def topic_config(self, topic: str) -> dict[str, str]:
        """The topic's own settings; none if the topic does not exist."""
        znode = self._read_paths([f"/config/topics/{topic}"])[0]
        return {} if znode is None else dict(json.loads(znode[0])["config"])

    def broker_defaults(self) -> dict[str, str]:
        """The settings that are set for all brokers while they run."""
        znode = self._read_paths(["/config/brokers/<default>"])[0]
        return {} if znode is None else dict(json.loads(znode[0])["config"])

    def client_quotas(self, client: str | None) -> dict[str, str]:
        """The quotas of a client id, None for the default."""
        name = "<default>" if client is None else client
        znode = self._read_paths([f"/config/clients/{name}"])[0]
        return {} if znode is None else dict(json.loads(znode[0])["config"])

    def is_reassigning(self, topic: str) -> bool:
        """Whether replicas of the topic are being added or removed."""
        znode = self._read_paths([f"/brokers/topics/{topic}"])[0]
        assigned = {} if znode is None else json.loads(znode[0])
        if any(assigned.get(field) for field in ("adding_replicas", "removing_replicas")):
            return True
        return REASSIGNMENT.name in self.lacks and topic in self._requested_moves()

    def _requested_moves(self) -> set[str]:
        """The topics of a reassignment that was requested by znode and is not finished."""
        znode = self._read_paths([REASSIGN])[0]
        moves = [] if znode is None else json.loads(znode[0])["partitions"]
        return {str(move["topic"]) for move in moves}

    def is_being_deleted(self, topic: str) -> bool:
        """Whether the topic is marked for deletion."""
        return topic in self._children("/admin/delete_topics")

    def is_deleted(self, topic: str) -> bool:
        """Whether neither the topic nor its mark for deletion exists."""
        return topic not in self._children("/brokers/topics") and not self.is_being_deleted(topic)

    def _registrations(self) -> dict[str, tuple[bytes, Any]]:
        names = self._children("/brokers/ids")
        znodes = self._read_paths([f"/brokers/ids/{name}" for name in names])
        return {
            f"b{name}": znode
            for name, znode in sorted(
                zip(names, znodes, strict=True), key=lambda pair: int(pair[0])
            )
            if znode is not None
        }

    def _children(self, path: str) -> list[str]:
        def read() -> list[str]:
            try:
                names = self.client.get_children_async(path).get(timeout=ANSWER_S)
            except NoNodeError:
                return []
            return [str(name) for name in names]

        return self._retry_read(read)

    def _read_paths(self, paths: Sequence[str]) -> list[tuple[bytes, Any] | None]:
        """Value and stat of every path; None for a missing node."""

        def read() -> list[tuple[bytes, Any] | None]:
            requests = [self.client.get_async(path) for path in paths]
            return [_znode(request) for request in requests]

        return self._retry_read(read)

    def _retry_read(self, read: Callable[[], Value]) -> Value:
        """Repeats a read that failed at the end of the connection or of the session: kazoo opens
        new ones."""
        try:
            answer: Value = KazooRetry(max_tries=-1, deadline=ANSWER_S, **PAUSES)(read)
        except (KazooException, KazooTimeoutError) as error:
            raise LabFailure(f"ZooKeeper does not answer: {error!r}") from error
        return answer


def _znode(request: IAsyncResult) -> tuple[bytes, Any] | None:
    try:
        value, stat = request.get(timeout=ANSWER_S)
    except NoNodeError:
        return None
    return value, stat


def _silent_logger() -> logging.Logger:
    """A logger that drops kazoo's messages: faults disconnect ZooKeeper on purpose, and every
    caller gets an error."""
    logger = logging.getLogger("urteil.zookeeper")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


def _view(
    topic: str, number: int, replicas: list[int], state: tuple[bytes, Any] | None
) -> PartitionView:
    no_leader = {"leader": -1, "isr": [], "leader_epoch": -1}
    fields: dict[str, Any] = json.loads(state[0]) if state else no_leader
    return PartitionView(
        topic=topic,
        partition=number,
        leader=f"b{fields['leader']}" if fields["leader"] >= 0 else None,
        leader_epoch=fields["leader_epoch"],
        isr=tuple(f"b{replica}" for replica in fields["isr"]),
        replicas=tuple(f"b{replica}" for replica in replicas),
    )
