"""Controllers in one process, each with a session, a socket that answers it, and a client side.

The peers answer LeaderAndIsr, UpdateMetadata and StopReplica over real connections and keep the
requests; there is no log behind them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from tests.broker.zookeeper.server import ZooKeeperServer, expire
from tests.ports import free_port
from tests.waiting import wait_until
from urteil.broker.base.clock import Clock
from urteil.broker.config.broker_config import load_config
from urteil.broker.controller.controller import Controller
from urteil.broker.net.channels import Channels
from urteil.broker.net.host_names import Resolver
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.framing import decode_request_header, encode_response
from urteil.broker.wire.messages import (
    RESPONSES,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.registration import Registration, create_persistent_paths
from urteil.broker.zookeeper.session import NoNodeError, Session
from urteil.broker.zookeeper.znodes import (
    BrokerEndpoint,
    BrokerInfo,
    PartitionState,
    TopicAssignment,
)

REQUESTS: dict[int, Any] = {
    int(request.KEY): request
    for request in (LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest)
}


class Node:
    """Broker `id` as far as controllers know one. A later life of a broker registers an address of
    the earlier one, `earlier_port`, too."""

    def __init__(
        self, zk_port: int, chroot: str, id: int, *, earlier_port: int = 0, **properties: str
    ) -> None:
        self.id = id
        self.port = free_port()
        self._earlier_port = earlier_port
        self.received: list[Any] = []
        self.refuse_with = ErrorCode.NONE
        self._chroot = chroot
        self.config = load_config(
            {
                "broker.id": str(id),
                "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
                "zookeeper.connect": f"127.0.0.1:{zk_port}{chroot}",
                "zookeeper.session.timeout.ms": "20000",
                "auto.leader.rebalance.enable": "false",
                "default.replication.factor": "2",
                "offsets.topic.replication.factor": "2",
                **{key.replace("_", "."): value for key, value in properties.items()},
            }
        )
        self._rack = self.config.broker_rack

    async def start(self) -> None:
        config = self.config
        self.zk = Session(config.zookeeper_connect, config.zookeeper_session_timeout_ms)
        await self.zk.connect(60)
        await create_persistent_paths(self.zk)
        ports = {"PLAINTEXT": self.port} | (
            {"EARLIER": self._earlier_port} if self._earlier_port else {}
        )
        endpoints = tuple(
            BrokerEndpoint(listener=name, host="127.0.0.1", port=port)
            for name, port in ports.items()
        )
        info = BrokerInfo(id=self.id, endpoints=endpoints, rack=self._rack)
        clock = Clock()
        self.registration = Registration(self.zk, info, clock.now_ms)
        self.channels = Channels(f"node-{self.id}", Resolver())
        self.controller = Controller(
            self.config,
            self.zk,
            self.registration,
            self.channels,
            clock,
            random.Random(self.id),
        )
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        await self.registration.register()
        await self.controller.start()

    async def stop(self) -> None:
        """Everything goes, and with the session the ephemeral nodes."""
        await self.controller.stop()
        self.channels.close()
        self._server.close()
        await self.zk.close()

    def expire(self) -> None:
        """End the session from elsewhere, as ZooKeeper does after silence."""
        expire(self.config.zookeeper_connect.split("/")[0], self.zk)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                writer.writelines(self._answer(await reader.readexactly(size)))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, frame: bytes) -> list[Any]:
        header, pos = decode_request_header(frame)
        request, _ = REQUESTS[header.api_key].decode(header.api_version, frame, pos)
        if not self.refuse_with:
            self.received.append(request)
        response = RESPONSES[header.api_key](error_code=self.refuse_with)  # type: ignore[call-arg]
        return encode_response(header.api_key, header.api_version, header.correlation_id, response)

    def states(self, topic: str) -> dict[int, LeaderAndIsrRequest.LeaderAndIsrPartitionState]:
        """The last LeaderAndIsr state of each partition of a topic."""
        return {
            state.partition_index: state
            for request in self.received
            if isinstance(request, LeaderAndIsrRequest)
            for topic_state in request.topic_states
            if topic_state.topic_name == topic
            for state in topic_state.partition_states
        }

    def metadata(self, topic: str) -> dict[int, UpdateMetadataRequest.UpdateMetadataPartitionState]:
        return {
            state.partition_index: state
            for request in self.received
            if isinstance(request, UpdateMetadataRequest)
            for topic_state in request.topic_states
            if topic_state.topic_name == topic
            for state in topic_state.partition_states
        }

    def alive(self) -> list[int]:
        """The live brokers of the last UpdateMetadata."""
        updates = [
            request for request in self.received if isinstance(request, UpdateMetadataRequest)
        ]
        return [broker.id for broker in updates[-1].live_brokers] if updates else []

    def stopped(self) -> list[tuple[str, int, bool]]:
        return [
            (topic.topic_name, state.partition_index, state.delete_partition)
            for request in self.received
            if isinstance(request, StopReplicaRequest)
            for topic in request.topic_states
            for state in topic.partition_states
        ]


class Nodes(dict[int, Node]):
    """Nodes of one chroot, by id."""

    def __init__(self, server: ZooKeeperServer, chroot: str, stack: AsyncExitStack) -> None:
        super().__init__()
        self.server, self.chroot, self._stack = server, chroot, stack

    async def add(self, id: int, zk_port: int | None = None, **more: Any) -> Node:
        node = Node(zk_port or self.server.port, self.chroot, id, **more)
        await node.start()
        self[id] = node
        return node

    async def remove(self, id: int) -> None:
        await self.pop(id).stop()

    async def active(self, above_epoch: int = 0) -> Node:
        """The one controller, once it knows the cluster."""

        def elected() -> list[Node]:
            return [
                node
                for node in self.values()
                if node.controller.term and node.controller.epoch > above_epoch
            ]

        await wait_until(lambda: len(elected()) == 1, "one controller")
        return elected()[0]

    async def all_alive(self, *ids: int) -> None:
        """Wait until every node has exactly these live brokers."""
        await wait_until(
            lambda: all(node.alive() == list(ids) for node in self.values()), f"{ids} alive"
        )

    async def make_topic(self, name: str, partitions: dict[int, tuple[int, ...]]) -> None:
        assignment = TopicAssignment(partitions=partitions)
        node = next(iter(self.values()))
        await node.zk.create(znodes.topic_path(name), znodes.encode_topic(assignment))

    async def state(self, topic: str, partition: int = 0) -> PartitionState | None:
        node = next(iter(self.values()))
        try:
            data, stat = await node.zk.get(znodes.state_path(topic, partition))
        except NoNodeError:
            return None
        return znodes.decode_state(data, stat.version)

    async def until_state(
        self, topic: str, *, leader: int, isr: tuple[int, ...], partition: int = 0
    ) -> PartitionState:
        states: list[PartitionState | None] = []

        async def is_reached() -> bool:
            states[:] = [state := await self.state(topic, partition)]
            return state is not None and (state.leader, state.isr) == (leader, isr)

        await wait_until(is_reached, lambda: states)
        (state,) = states
        assert state is not None
        return state


@asynccontextmanager
async def nodes(
    server: ZooKeeperServer, chroot: str, *ids: int, **properties: str
) -> AsyncIterator[Nodes]:
    async with AsyncExitStack() as stack:
        made = Nodes(server, chroot, stack)
        try:
            for id in ids:
                await made.add(id, **properties)
            if ids:
                await made.active()
                await made.all_alive(*ids)
            yield made
        finally:
            for node in made.values():
                await node.stop()


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(200):
            await scenario()

    asyncio.run(bounded())
