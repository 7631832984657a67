"""ZooKeeper in memory, and one term on it that can end at any operation."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast
from uuid import uuid4

from urteil.broker.controller.controller_context import ControllerContext
from urteil.broker.controller.election_counters import Elections
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.controller.term import Term, TermOptions
from urteil.broker.net.channels import Endpoint
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.entity_configs import EntityConfigs
from urteil.broker.zookeeper.session import (
    BadVersionError,
    ConnectionLoss,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Session,
    Watch,
)
from urteil.broker.zookeeper.session_types import Check, Create, Delete, MultiFailed, Op, Set, Stat
from urteil.broker.zookeeper.znodes import (
    BrokerEndpoint,
    BrokerInfo,
    PartitionState,
    TopicAssignment,
)

T = TypeVar("T")


@dataclass
class Node:
    data: bytes
    czxid: int
    version: int = 0
    mzxid: int = 0


class Died(Exception):
    """The broker with this session is no more."""


class PaperZooKeeper:
    """The tree, and who watches it. Operations are done at once and in order."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"": Node(b"", 0)}
        self.zxid = 0
        self.watches: dict[tuple[str, str], dict[Watch, None]] = {}
        for path in znodes.PERSISTENT:
            self.ensure(path)
        self.put(znodes.CONTROLLER_EPOCH, b"0")

    def ensure(self, path: str) -> None:
        for end in [n for n, letter in enumerate(path + "/") if letter == "/" and n]:
            if path[:end] not in self.nodes:
                self.apply(Create(path[:end]))

    def put(self, path: str, data: bytes) -> None:
        """By somebody else's hand."""
        self.ensure(path.rpartition("/")[0])
        self.apply(Set(path, data) if path in self.nodes else Create(path, data))

    def remove(self, path: str) -> None:
        self.apply(Delete(path))

    def children(self, path: str) -> list[str]:
        below = f"{path}/"
        nodes = [node for node in self.nodes if node.startswith(below)]
        return sorted(node[len(below) :] for node in nodes if "/" not in node[len(below) :])

    def check(self, op: Op) -> None:
        node = self.nodes.get(op.path)
        if isinstance(op, Create):
            if node is not None:
                raise NodeExistsError
            if op.path.rpartition("/")[0] not in self.nodes:
                raise NoNodeError
            return
        if node is None:
            raise NoNodeError
        if op.version not in (-1, node.version):
            raise BadVersionError
        if isinstance(op, Delete) and self.children(op.path):
            raise NotEmptyError

    def apply(self, op: Op) -> None:
        self.check(op)
        self.zxid += 1
        parent = op.path.rpartition("/")[0]
        match op:
            case Create():
                self.nodes[op.path] = Node(op.data, self.zxid, mzxid=self.zxid)
                self._fire("data", op.path)
                self._fire("children", parent)
            case Set():
                node = self.nodes[op.path]
                node.data, node.version, node.mzxid = op.data, node.version + 1, self.zxid
                self._fire("data", op.path)
            case Delete():
                del self.nodes[op.path]
                self._fire("data", op.path)
                self._fire("children", parent)

    def multi(self, ops: Sequence[Op]) -> None:
        before = {
            path: Node(node.data, node.czxid, node.version, node.mzxid)
            for path, node in self.nodes.items()
        }
        for index, op in enumerate(ops):
            try:
                self.check(op)
            except Exception as cause:
                self.nodes = before
                raise MultiFailed(index, cause) from None
            if not isinstance(op, Check):
                self.apply(op)

    def watch(self, kind: str, path: str, watch: Watch | None) -> None:
        if watch is not None:
            self.watches.setdefault((kind, path), {})[watch] = None

    def _fire(self, kind: str, path: str) -> None:
        for watch in self.watches.pop((kind, path), {}):
            watch(path)

    # -- what tests look at ---------------------------------------------------------------------

    def topic(self, name: str) -> TopicAssignment:
        return znodes.decode_topic(self.nodes[znodes.topic_path(name)].data)

    def state(self, tp: TopicPartition) -> PartitionState:
        node = self.nodes[znodes.state_path(*tp)]
        return znodes.decode_state(node.data, node.version)


class PaperSession:
    """What the controller needs of `Session`; ends with Died at operation `dies_at`.

    The answer of write `unheard` is lost with the connection, and the write itself with
    `undone`. Operations and writes count from 1.
    """

    def __init__(self, zk: PaperZooKeeper, dies_at: int = 0, unheard: int = 0, undone: int = 0):
        self._zk = zk
        self._dies_at, self._unheard, self._undone = dies_at, unheard, undone
        self.operations = self.writes = 0
        self.dead = False

    async def _operation(self) -> None:
        await asyncio.sleep(0)
        self.operations += 1
        self.dead = self.dead or self.operations == self._dies_at
        if self.dead:
            raise Died

    async def _write(self, act: Callable[[], None]) -> None:
        await self._operation()
        self.writes += 1
        if self.writes == self._undone:
            raise ConnectionLoss
        act()
        if self.writes == self._unheard:
            raise ConnectionLoss

    async def get(self, path: str, watch: Watch | None = None) -> tuple[bytes, Stat]:
        await self._operation()
        node = self._zk.nodes.get(path)
        if node is None:
            raise NoNodeError
        self._zk.watch("data", path, watch)
        return node.data, Stat(node.czxid, node.mzxid, node.version, 0)

    async def exists(self, path: str, watch: Watch | None = None) -> Stat | None:
        await self._operation()
        self._zk.watch("data", path, watch)
        node = self._zk.nodes.get(path)
        return None if node is None else Stat(node.czxid, node.mzxid, node.version, 0)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        await self._operation()
        if path not in self._zk.nodes:
            raise NoNodeError
        self._zk.watch("children", path, watch)
        return self._zk.children(path)

    async def create(self, path: str, data: bytes = b"") -> None:
        await self._write(lambda: self._zk.apply(Create(path, data)))

    async def set(self, path: str, data: bytes, version: int = -1) -> None:
        await self._write(lambda: self._zk.apply(Set(path, data, version)))

    async def multi(self, ops: Sequence[Op]) -> None:
        await self._write(lambda: self._zk.multi(ops))


@dataclass
class PaperBroker:
    """A broker by what its disk holds, and what it cannot reach there."""

    disk: dict[TopicPartition, LeaderAndIsrRequest.LeaderAndIsrPartitionState] = field(
        default_factory=dict
    )
    failed: set[TopicPartition] = field(default_factory=set)
    received: list[Any] = field(default_factory=list)
    metadata: dict[TopicPartition, UpdateMetadataRequest.UpdateMetadataPartitionState] = field(
        default_factory=dict
    )

    def answer(self, request: Any) -> Any:
        self.received.append(request)
        match request:
            case LeaderAndIsrRequest():
                return LeaderAndIsrResponse(
                    topics=[self._host(topic_state) for topic_state in request.topic_states]
                )
            case StopReplicaRequest():
                return StopReplicaResponse(
                    partition_errors=[
                        StopReplicaResponse.StopReplicaPartitionError(
                            topic_name=topic.topic_name,
                            partition_index=partition_state.partition_index,
                            error_code=self._stop(
                                (topic.topic_name, partition_state.partition_index), partition_state
                            ),
                        )
                        for topic in request.topic_states
                        for partition_state in topic.partition_states
                    ]
                )
            case UpdateMetadataRequest():
                for topic in request.topic_states:
                    for partition_state in topic.partition_states:
                        self.metadata[topic.topic_name, partition_state.partition_index] = (
                            partition_state
                        )
                return UpdateMetadataResponse()
        raise AssertionError(request)

    def _host(
        self, topic: LeaderAndIsrRequest.LeaderAndIsrTopicState
    ) -> LeaderAndIsrResponse.LeaderAndIsrTopicError:
        errors = []
        for partition_state in topic.partition_states:
            tp = (topic.topic_name, partition_state.partition_index)
            error = ErrorCode.KAFKA_STORAGE_ERROR if tp in self.failed else ErrorCode.NONE
            if not error:
                self.disk[tp] = partition_state
            errors.append(
                LeaderAndIsrResponse.LeaderAndIsrPartitionError(
                    partition_index=partition_state.partition_index, error_code=error
                )
            )
        return LeaderAndIsrResponse.LeaderAndIsrTopicError(
            topic_id=topic.topic_id, partition_errors=errors
        )

    def _stop(self, tp: TopicPartition, stop: Any) -> ErrorCode:
        if tp in self.failed:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if stop.delete_partition:
            self.disk.pop(tp, None)
        return ErrorCode.NONE


class World:
    """A tree, the brokers in it, and the controllers that follow each other."""

    def __init__(self, brokers: Iterable[int], topics: Mapping[str, Mapping[int, tuple[int, ...]]]):
        self.zk = PaperZooKeeper()
        self.brokers: dict[int, PaperBroker] = {}
        self.disks: dict[int, PaperBroker] = {}
        self.notes: set[str] = set()  # what a test must not do twice
        for broker in brokers:
            self.come(broker)
        for name, partitions in topics.items():
            self.zk.put(
                znodes.topic_path(name), znodes.encode_topic(TopicAssignment(partitions=partitions))
            )

    def come(self, broker: int, *, empty: bool = False) -> None:
        endpoint = BrokerEndpoint(listener="PLAINTEXT", host=f"b{broker}", port=9092)
        info = BrokerInfo(id=broker, endpoints=(endpoint,))
        if empty or broker not in self.disks:
            self.disks[broker] = PaperBroker()
        self.brokers[broker] = self.disks[broker]
        self.zk.put(znodes.broker_path(broker), znodes.encode_broker(info, 0))

    def go(self, broker: int) -> None:
        del self.brokers[broker]
        self.zk.remove(znodes.broker_path(broker))

    def holders(self, tp: TopicPartition) -> set[int]:
        return {broker for broker, stub in self.brokers.items() if tp in stub.disk}


class SimulatedTerm:
    """A term with its queue and the brokers that it sends to."""

    def __init__(self, world: World, *, deletion: bool = True, **trouble: int) -> None:
        self.world = world
        self.session = PaperSession(world.zk, **trouble)
        session = cast(Session, self.session)
        node = world.zk.nodes[znodes.CONTROLLER_EPOCH]
        world.zk.apply(Set(znodes.CONTROLLER_EPOCH, str(int(node.data) + 1).encode()))
        self._queue: dict[Callable[[Term], Any], None] = {}
        self.term = Term(
            ControllerContext(1, int(node.data), node.version),
            session,
            EntityConfigs(session, lambda: 0),
            self,
            TermOptions(
                listener="PLAINTEXT",
                request_timeout_ms=1000,
                unclean_by_default=lambda: False,
                deletion_enabled=deletion,
                make_topic_id=uuid4,
            ),
            lambda method: self._queue.update({method: None}),
            lambda: None,
            Elections(),
        )

    async def send(
        self, node: Endpoint, msg: Any, version: int, timeout_ms: float, *, purpose: str = ""
    ) -> Any:
        broker = self.world.brokers.get(node.id)
        if broker is None or self.session.dead:
            await asyncio.Event().wait()
        assert broker is not None
        await asyncio.sleep(0)
        return broker.answer(msg)

    async def act(self, act: Callable[[Term], Awaitable[T]]) -> T:
        """Do something, then everything that follows from it."""
        try:
            result = await act(self.term)
            await self.settle()
        except Died:
            self.term.close()
            raise
        return result

    async def begin(self) -> None:
        await self.act(Term.begin)

    async def settle(self) -> None:
        while True:
            for broker in list(self.world.brokers):
                await self.term.senders.wait_for_answers(broker)
            if not self._queue:
                return
            method = next(iter(self._queue))
            del self._queue[method]
            await method(self.term)

    async def catch_up(self, tp: TopicPartition) -> AlterPartitionResponse | None:
        """The leader proposes every replica that is alive, as if all had what it has."""
        state = self.term.context.states.get(tp)
        if state is None or state.leader not in self.world.brokers:
            return None
        role = self.world.brokers[state.leader].disk[tp]
        topic_id = self.term.context.topics[tp[0]].topic_id
        assert topic_id is not None
        proposal = AlterPartitionRequest.PartitionData(
            partition_index=tp[1],
            leader_epoch=role.leader_epoch,
            new_isr_with_epochs=[
                AlterPartitionRequest.BrokerState(broker_id=replica)
                for replica in role.replicas
                if replica in self.world.brokers and tp not in self.world.brokers[replica].failed
            ],
            partition_epoch=state.partition_epoch,
            leader_recovery_state=role.leader_recovery_state,
        )
        request = AlterPartitionRequest(
            broker_id=state.leader,
            broker_epoch=self.term.context.brokers[state.leader].epoch,
            topics=[AlterPartitionRequest.TopicData(topic_id=topic_id, partitions=[proposal])],
        )
        return await self.act(lambda term: term.alter_partition(request, 3))
