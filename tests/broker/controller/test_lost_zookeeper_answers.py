"""A connection to ZooKeeper lost after the write was done: the write is found, not repeated."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from tests.broker.controller.controller_nodes import run
from tests.broker.controller.zookeeper_proxy import AnswerDroppingProxy
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.waiting import wait_until
from urteil.broker.controller.controller_election import ControllerElection
from urteil.broker.controller.metadata_store import STATES_A_MULTI, MetadataStore
from urteil.broker.controller.topic_admin import NewTopic, TopicAdmin
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.registration import create_persistent_paths
from urteil.broker.zookeeper.session import Session
from urteil.broker.zookeeper.znodes import PartitionState, TopicAssignment

T = TypeVar("T")
Meanwhile = Callable[[], Awaitable[None]]


class Behind:
    """A session behind a proxy."""

    def __init__(self, zk: Session, proxy: AnswerDroppingProxy) -> None:
        self.zk, self._gate = zk, proxy

    async def without_answers(
        self, act: Awaitable[T], writes: int = 1, meanwhile: Meanwhile | None = None
    ) -> T:
        """Let the first writes reach ZooKeeper, and lose the connection before each answer;
        `meanwhile` something else is done, before the last answer is known to be lost."""
        task = asyncio.ensure_future(act)
        for left in reversed(range(writes)):
            self._gate.dropped, self._gate.armed = 0, True
            await wait_until(lambda: self._gate.dropped, "an answer is lost")
            assert not task.done()
            if meanwhile is not None and left == 0:
                await meanwhile()
            self._gate.cut()
        return await task


@asynccontextmanager
async def behind_proxy(server: ZooKeeperServer, chroot: str) -> AsyncIterator[Behind]:
    proxy = AnswerDroppingProxy(server.port)
    await proxy.start()
    zk = Session(f"127.0.0.1:{proxy.port}{chroot}", 10_000)
    try:
        await zk.connect(10)
        await create_persistent_paths(zk)
        yield Behind(zk, proxy)
    finally:
        await zk.close()
        await proxy.stop()


async def one_topic(zk: Session) -> tuple[MetadataStore, PartitionState]:
    await zk.create(znodes.CONTROLLER_EPOCH, b"1")
    topic = TopicAssignment(partitions={0: (1, 2)}, topic_id=UUID(int=5))
    await zk.create(znodes.topic_path("t"), znodes.encode_topic(topic))
    return MetadataStore(zk, 1, 0), PartitionState(
        leader=1, leader_epoch=0, isr=(1, 2), controller_epoch=1
    )


def test_first_states_and_changes(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with behind_proxy(zookeeper, chroot) as behind:
            store, state = await one_topic(behind.zk)
            tp, path = ("t", 0), znodes.state_path("t", 0)
            made = await behind.without_answers(store.create_states({tp: state}), 2)
            assert made == {tp: state}
            written = await behind.without_answers(store.update_states({tp: state}))
            assert written[tp] is not None
            assert written[tp].partition_epoch == 1
            data, stat = await behind.zk.get(path)
            assert (znodes.decode_state(data, stat.version), stat.version) == (written[tp], 1)

    run(scenario)


def test_many_changes_at_once(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """One that another had written stands in nobody's way; an answer that is lost is looked for."""

    async def scenario() -> None:
        async with behind_proxy(zookeeper, chroot) as behind:
            store, state = await one_topic(behind.zk)
            states = {("t", partition): state for partition in range(STATES_A_MULTI + 3)}
            assert await store.create_states(states) == states
            await behind.zk.set(znodes.state_path("t", 1), znodes.encode_state(state))
            written = await store.update_states(states)
            assert [tp for tp, state in written.items() if state is None] == [("t", 1)]
            again = {tp: state for tp, state in written.items() if state is not None}
            updated = await behind.without_answers(store.update_states(again))
            assert updated == {tp: replace(state, partition_epoch=2) for tp, state in again.items()}
            for tp, updated_state in updated.items():
                _, stat = await behind.zk.get(znodes.state_path(*tp))
                assert updated_state is not None
                assert stat.version == updated_state.partition_epoch

    run(scenario)


def test_lost_answer_of_election_is_found(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with behind_proxy(zookeeper, chroot) as behind:
            await behind.zk.create(znodes.CONTROLLER_EPOCH, b"7")
            election = ControllerElection(behind.zk, 1, lambda: 0, lambda path: None)
            won = await behind.without_answers(election.stand())
            assert won is not None
            assert won.epoch == 8
            assert await election.still_won(won)

    run(scenario)


def test_lost_answer_of_creation_is_found(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with behind_proxy(zookeeper, chroot) as behind:
            admin = TopicAdmin(
                behind.zk,
                random.Random(1),
                default_partitions=1,
                default_replication_factor=1,
                properties={},
            )
            topic = NewTopic(name="t", assignment={0: (1,)})
            made = await behind.without_answers(admin.create(topic))
            assert not made.error
            assert made.topic_id.int

    run(scenario)


def test_lost_answer_of_deletion_is_found(zookeeper: ZooKeeperServer, chroot: str) -> None:
    async def scenario() -> None:
        async with behind_proxy(zookeeper, chroot) as behind:
            store, state = await one_topic(behind.zk)
            await store.create_states({("t", 0): state})
            await behind.zk.create(znodes.delete_topic_path("t"))
            await behind.without_answers(store.delete_topic("t", UUID(int=5)), 2)
            assert await behind.zk.children(znodes.TOPICS) == []
            assert await behind.zk.children(znodes.DELETE_TOPICS) == []

    run(scenario)


def test_lost_answer_of_deletion_spares_a_recreated_topic(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """Not even one that is wished away itself: its replicas are to be stopped before."""

    async def scenario() -> None:
        anew = TopicAssignment(partitions={0: (2, 1)}, topic_id=UUID(int=6))
        other = Session(f"127.0.0.1:{zookeeper.port}{chroot}", 10_000)

        async def make_anew() -> None:
            await other.create(znodes.topic_path("t"), znodes.encode_topic(anew))
            await other.create(znodes.delete_topic_path("t"))

        async with behind_proxy(zookeeper, chroot) as behind:
            await other.connect(10)
            store, state = await one_topic(behind.zk)
            await store.create_states({("t", 0): state})
            await behind.zk.create(znodes.delete_topic_path("t"))
            await behind.without_answers(store.delete_topic("t", UUID(int=5)), 2, make_anew)
            data, _ = await behind.zk.get(znodes.topic_path("t"))
            assert znodes.decode_topic(data) == anew
            assert await behind.zk.children(znodes.DELETE_TOPICS) == ["t"]
            await other.close()

    run(scenario)
