"""One cluster that is asked: raw requests, one connection a broker, answers as plain data."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from kazoo.client import KazooClient

from tests.conformance.plain import plain
from tests.waiting import until
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.framing import RequestHeader, decode_response, encode_request
from urteil.broker.wire.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    ListOffsetsRequest,
    MetadataRequest,
)
from urteil.broker.wire.schema import Message
from urteil.chaos.controls import Controls

Made = TypeVar("Made")

CLOSED: Final = "closed"
ANSWER_TIMEOUT_S = 30.0
CORRELATION = 77
POLL_S = 0.03
NOT_YET = (
    ErrorCode.NONE,  # so Apache Kafka answers any heartbeat while it loads the groups
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Call:
    """A request under way on a connection of its own, which has answered before: what is asked on
    others later is not taken up earlier because this one was still to be accepted."""

    def __init__(self, side: Side, to: int, message: Message, version: int, client: str) -> None:
        self._side, self._message, self._version = side, message, version
        self._socket = side.connect(to)
        self._socket.sendall(_request(ApiVersionsRequest(), 0, client))
        read_frame(self._socket)
        self._socket.sendall(_request(message, version, client))

    def answer(self) -> Any:
        """The answer as a message, or CLOSED; the connection ends."""
        with self._socket:
            return self._side.decode(self._message, self._version, read_frame(self._socket))

    def hang_up(self) -> None:
        self._socket.close()


class Side:
    """A cluster by the addresses that its brokers 1, 2, 3 have for clients, and its ZooKeeper."""

    def __init__(
        self,
        name: str,
        bootstrap: Sequence[str],
        zookeeper: str = "",
        controls: Controls | None = None,
        source: str = "",
        addresses: Sequence[tuple[str, int]] = (),
    ) -> None:
        """Questions go to `addresses`, by default to those of `bootstrap`, which tools are given.
        `controls` end and start its brokers, where the cluster was started here. `source` is
        the address that asks, where that matters."""
        self.name = name
        self._source = (source, 0) if source else None
        self.controls = controls
        self.zookeeper = zookeeper
        self.bootstrap = ",".join(bootstrap)
        self._addresses = list(addresses) or [_address(address) for address in bootstrap]
        self._open: dict[int, socket.socket] = {}
        self.names: dict[str, str] = {}
        self.ids: dict[str, Any] = {}
        self._made: dict[Any, Any] = {}

    def from_host(self, source: str) -> Side:
        """The same brokers, with another source address."""
        return Side(self.name, self.bootstrap.split(","), self.zookeeper, source=source)

    def close(self) -> None:
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    def connect(self, to: int) -> socket.socket:
        return socket.create_connection(
            self._addresses[to - 1], ANSWER_TIMEOUT_S, source_address=self._source
        )

    # -- asking ---------------------------------------------------------------------------------

    def ask(self, message: Message, version: int, *, to: int = 1, client: str = "asker") -> Any:
        """Return the answer in plain data, or CLOSED."""
        return self.plain(self.get(message, version, to=to, client=client))

    def get(self, message: Message, version: int, *, to: int = 1, client: str = "asker") -> Any:
        """The answer as a message, or CLOSED."""
        frame = self.exchange(_request(message, version, client), to=to)
        return self.decode(message, version, frame)

    def exchange(self, data: bytes, *, to: int = 1) -> bytes | None:
        """Send bytes and read one frame. Returns None when the broker closes the connection."""
        if to not in self._open:
            self._open[to] = self.connect(to)
        connection = self._open[to]
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        try:
            frame = read_frame(connection)
        except TimeoutError:  # a late answer would be read as the next one
            self._open.pop(to).close()
            raise
        if frame is None:
            self._open.pop(to).close()
        return frame

    def raw(
        self, data: bytes, *, to: int = 1, end: bool = False, patience_s: float = ANSWER_TIMEOUT_S
    ) -> bytes | str:
        """Send bytes on a new connection. Returns a frame, CLOSED, or `silent` after `patience_s`.

        `end` shuts down the sending direction after them.
        """
        with self.connect(to) as connection:
            connection.settimeout(patience_s)
            try:
                connection.sendall(data)
                if end:
                    connection.shutdown(socket.SHUT_WR)
                frame = read_frame(connection)
            except TimeoutError:
                return "silent"
            except ConnectionError:
                return CLOSED
        return CLOSED if frame is None else frame

    def start(self, message: Message, version: int, *, to: int = 1, client: str = "asker") -> Call:
        """Send a request that may wait for others, on its own connection."""
        return Call(self, to, message, version, client)

    def decode(self, message: Message, version: int, frame: bytes | None) -> Any:
        if frame is None:
            return CLOSED
        correlation, answer = decode_response(message.KEY, version, frame)
        assert correlation == CORRELATION
        return answer

    def plain(self, answer: Any) -> Any:
        """Plain data, with the names known here."""
        return plain(answer, self.names)

    @contextlib.contextmanager
    def znodes(self) -> Iterator[KazooClient]:
        """The cluster's ZooKeeper, for what tools write there."""
        client = KazooClient(self.zookeeper)
        client.start()
        try:
            yield client
        finally:
            client.stop()
            client.close()

    # -- what questions are about ---------------------------------------------------------------

    def make_once(self, make: Callable[[Side], Made]) -> Made:
        """Return the result of `make`, which runs at the first call only."""
        if make not in self._made:
            self._made[make] = make(self)
        made: Made = self._made[make]
        return made

    def answers(self) -> bool:
        """Whether each broker answers and lists all brokers.

        Apache Kafka listens after it has registered."""
        brokers = range(1, len(self._addresses) + 1)
        known = [self.get(MetadataRequest(topics=[]), 1, to=broker) for broker in brokers]
        return all(metadata != CLOSED and len(metadata.brokers) == len(known) for metadata in known)

    def controller(self) -> int:
        answer = self.get(MetadataRequest(topics=[]), 1)
        return int(answer.controller_id)

    def create(
        self,
        name: str,
        assignment: Sequence[Sequence[int]] = ((1,),),
        configs: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic with these replicas, each partition led by its first one.

        Returns when every partition is led and every broker has the topic."""
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name,
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[
                        CreateTopicsRequest.CreatableReplicaAssignment(
                            partition_index=index, broker_ids=list(ids)
                        )
                        for index, ids in enumerate(assignment)
                    ],
                    configs=[
                        CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                        for key, value in (configs or {}).items()
                    ],
                )
            ],
            timeout_ms=10_000,
        )
        answers: list[Any] = []

        def is_decided() -> bool:  # the controller may change just now
            answers[:] = self.get(request, 7, to=self.controller()).topics
            return bool(answers[0].error_code != ErrorCode.NOT_CONTROLLER)

        self.until(is_decided)
        (answer,) = answers
        assert answer.error_code == ErrorCode.NONE, (self.name, answer)
        self.ids[name] = answer.topic_id
        for index, ids in enumerate(assignment):
            self.until(lambda i=index, n=ids[0]: self.serves(name, i, n))  # type: ignore[misc]
        self.until_everywhere(lambda to: self._knows(name, to))
        return name

    @contextlib.contextmanager
    def without_brokers(self, *brokers: int) -> Iterator[Controls]:
        """Kill these brokers one after the other; start them again at the end."""
        controls = self.controls
        assert controls is not None, "clusters that URTEIL_CONFORMANCE names are not ended"
        try:
            for broker in brokers:
                if broker in self._open:
                    self._open.pop(broker).close()
                controls.kill(f"b{broker}")
            yield controls
        finally:
            for broker in brokers:
                controls.start(f"b{broker}")
            self.until(self.answers, deadline_s=30)

    @contextlib.contextmanager
    def paused_broker(self, broker: int) -> Iterator[None]:
        """Pause a broker. At the end it resumes, and all brokers list each other again."""
        assert self.controls is not None, "clusters that URTEIL_CONFORMANCE names are not stopped"
        self.controls.pause(f"b{broker}")
        try:
            yield
        finally:
            self.controls.resume(f"b{broker}")
            self.until(self.answers)

    def _knows(self, name: str, to: int) -> bool:
        topics = [MetadataRequest.MetadataRequestTopic(name=name)]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        answer = self.get(request, 9, to=to)  # CLOSED over a connection from before a restart
        return answer != CLOSED and bool(answer.topics[0].error_code == ErrorCode.NONE)

    def serves(self, topic: str, partition: int, broker: int) -> bool:
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=partition, timestamp=-1
                        )
                    ],
                )
            ],
        )
        answer = self.get(request, 4, to=broker)
        if answer == CLOSED:
            return False
        known = self.get(
            MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=topic)],
                allow_auto_topic_creation=False,
            ),
            7,
        )
        leaders = {
            partition.partition_index: partition.leader_id
            for partition in known.topics[0].partitions
        }
        return bool(
            answer.topics[0].partitions[0].error_code == ErrorCode.NONE
            and known.topics[0].error_code == ErrorCode.NONE
            and leaders.get(partition) == broker
        )

    def coordinator(self, group: str) -> int:
        """The coordinator of a group, once that broker has loaded it."""
        ids: list[int] = []
        known = HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")

        def ready() -> bool:
            answer = self.get(FindCoordinatorRequest(key=group, key_type=0), 1)
            ids[:] = [answer.node_id]
            if answer.error_code != ErrorCode.NONE:
                return False
            said = self.get(known, 0, to=answer.node_id)
            return said == CLOSED or said.error_code not in NOT_YET

        self.until(ready)
        return ids[0]

    def until(self, condition: Callable[[], bool], *, deadline_s: float = 30.0) -> None:
        """Wait until the condition holds."""
        until(condition, self.name, deadline_s=deadline_s, poll_s=POLL_S)

    def until_everywhere(self, condition: Callable[[int], bool]) -> None:
        """Wait until the condition holds at each broker, one after the other."""
        for broker in range(1, len(self._addresses) + 1):
            self.until(partial(condition, broker))


def read_frame(connection: socket.socket) -> bytes | None:
    """Read one frame without its size. Returns None when the peer closes before its end."""
    size = _read(connection, 4)
    if size is None:
        return None
    return _read(connection, int.from_bytes(size, "big"))


def _read(connection: socket.socket, count: int) -> bytes | None:
    data = b""
    while len(data) < count:
        try:
            more = connection.recv(count - len(data))
        except ConnectionError:
            return None
        if not more:
            return None
        data += more
    return data


def _request(message: Message, version: int, client: str) -> bytes:
    header = RequestHeader(message.KEY, version, CORRELATION, client)
    return b"".join(encode_request(header, message))


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)
