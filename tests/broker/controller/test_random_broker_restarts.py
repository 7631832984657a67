"""Brokers and controllers come and go at random while topics are made, moved and deleted; then
peace.

What must hold in the end does not depend on the order of events: one controller, every partition
led by a member of its ISR, every broker with exactly the state in ZooKeeper. What must hold all
the time: no epoch goes back, no leader from outside the ISR.
"""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.broker.controller.controller_nodes import Node, Nodes, nodes, run
from tests.broker.controller.test_controller import proposal
from tests.broker.controller.test_topics import create, topic
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.waiting import wait_until
from urteil.broker.wire.messages import AlterPartitionReassignmentsRequest
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import NodeExistsError, NoNodeError
from urteil.broker.zookeeper.znodes import PartitionState

BROKERS = (1, 2, 3, 4)
ROUNDS = 25
Topic = AlterPartitionReassignmentsRequest.ReassignableTopic
Reassigned = AlterPartitionReassignmentsRequest.ReassignablePartition
Watched = dict[str, PartitionState]


class Storm:
    def __init__(self, cluster: Nodes, rng: random.Random) -> None:
        self.cluster, self.rng = cluster, rng
        self.made = 0
        self.history: dict[str, PartitionState] = {}

    async def step(self) -> None:
        acts = [self.crash, self.back, self.bounce, self.expire, self.unseat]
        acts += [self.create, self.create, self.delete, self.rejoin, self.rejoin]
        acts += [self.reassign, self.reassign]
        await self.rng.choice(acts)()
        await asyncio.sleep(self.rng.random() * 0.05)
        await self.observe()

    def only(self) -> Node:
        return self.cluster[self.rng.choice(sorted(self.cluster))]

    async def crash(self) -> None:
        if len(self.cluster) > 2:
            await self.cluster.remove(self.only().id)

    async def back(self) -> None:
        for id in BROKERS:
            if id not in self.cluster:
                await self.cluster.add(id)
                return

    async def bounce(self) -> None:
        id = self.only().id
        await self.cluster.remove(id)
        await self.cluster.add(id)

    async def expire(self) -> None:
        await asyncio.to_thread(self.only().expire)

    async def unseat(self) -> None:
        try:
            await self.only().zk.delete(znodes.CONTROLLER)
        except NoNodeError:
            return

    async def create(self) -> None:
        self.made += 1
        name = f"t{self.made}"
        for node in list(self.cluster.values()):
            if node.controller.term is not None:
                await create(node, topic(name, 2, 2), timeout_ms=50)
                return

    async def delete(self) -> None:
        node = self.only()
        names = await node.zk.children(znodes.TOPICS)
        if len(names) > 2:
            try:
                await node.zk.create(znodes.delete_topic_path(self.rng.choice(names)))
            except NodeExistsError:
                return

    async def reassign(self) -> None:
        """Other replicas for some partition, or those it had before."""
        for node in list(self.cluster.values()):
            term = node.controller.term
            if term is None or not term.context.topics:
                continue
            name = self.rng.choice(sorted(term.context.topics))
            target = self.rng.sample(BROKERS, self.rng.choice([1, 2, 3]))
            asked = Reassigned(partition_index=0, replicas=self.rng.choice([target, target, None]))
            await node.controller.alter_partition_reassignments(
                AlterPartitionReassignmentsRequest(topics=[Topic(name=name, partitions=[asked])])
            )
            return

    async def rejoin(self) -> None:
        """Leaders propose every replica, as if all had caught up."""
        for node in list(self.cluster.values()):
            term = node.controller.term
            if term is None:
                continue
            for (name, partition), now in list(term.context.states.items()):
                leader = self.cluster.get(now.leader)
                if node.controller.term is not term:
                    break
                if partition == 0 and leader is not None and name in term.context.topics:
                    asked = proposal(
                        leader,
                        node,
                        term.context.replicas((name, 0)),
                        now.partition_epoch,
                        leader_epoch=now.leader_epoch,
                        topic=name,
                    )
                    await node.controller.alter_partition(asked, 3)

    async def observe(self) -> None:
        """Epochs never go back within one life of a topic; leaders are in their ISR."""
        for key, state in (await self.states()).items():
            old = self.history.get(key)
            assert state.leader == -1 or state.leader in state.isr, (key, state)
            assert state.recovery_state == 0, "no unclean election was allowed"
            if old is not None:
                assert state.partition_epoch >= old.partition_epoch, (key, old, state)
                assert state.leader_epoch >= old.leader_epoch, (key, old, state)
                assert state.controller_epoch >= old.controller_epoch, (key, old, state)
                if old.leader_epoch == state.leader_epoch:
                    assert old.leader == state.leader, (key, old, state)
            self.history[key] = state

    async def states(self) -> Watched:
        partition_states = {}
        zk = next(iter(self.cluster.values())).zk
        for name in await zk.children(znodes.TOPICS):
            for partition in (0, 1):
                state = await self.cluster.state(name, partition)
                if state is not None:
                    partition_states[f"{name}-{partition}"] = state
        return partition_states

    async def settled(self) -> str:
        """Empty when all is as it must be, else what is not."""
        active = [node for node in self.cluster.values() if node.controller.term is not None]
        if len(active) != 1:
            return f"{len(active)} controllers"
        zk = active[0].zk
        if left := await zk.children(znodes.DELETE_TOPICS):
            return f"not deleted: {left}"
        await self.rejoin()
        assert active[0].controller.term is not None
        if moving := active[0].controller.term.context.partitions_under_reassignment():
            return f"reassignments under way: {moving}"
        states = await self.states()
        names = await zk.children(znodes.TOPICS)
        if len(states) != 2 * len(names):
            return f"{len(states)} states of {len(names)} topics"
        for key, state in states.items():
            if state.leader not in self.cluster:
                return f"{key} is not led: {state}"
            name, _, partition = key.rpartition("-")
            data, _ = await zk.get(znodes.topic_path(name))
            if not set(state.isr) <= set(znodes.decode_topic(data).partitions[int(partition)]):
                return f"{key} has strangers in its ISR: {state}"
            for node in self.cluster.values():
                known = node.metadata(name).get(int(partition))
                if known is None or (known.leader, known.leader_epoch, tuple(known.isr)) != (
                    state.leader,
                    state.leader_epoch,
                    state.isr,
                ):
                    return f"broker {node.id} has {key} as {known}, not {state}"
            leader = self.cluster[state.leader].states(name).get(int(partition))
            if leader is None or leader.leader_epoch != state.leader_epoch:
                return f"the leader of {key} has the state {leader}"
        return ""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_restarts_end_in_a_consistent_cluster(
    zookeeper: ZooKeeperServer, chroot: str, seed: int
) -> None:
    async def scenario() -> None:
        async with nodes(zookeeper, chroot, *BROKERS) as cluster:
            storm = Storm(cluster, random.Random(seed))
            for _ in range(ROUNDS):
                await storm.step()
            for id in BROKERS:
                if id not in cluster:
                    await cluster.add(id)
            problems: list[str] = []

            async def is_settled() -> bool:
                problems[:] = [await storm.settled()]
                return problems == [""]

            await wait_until(is_settled, lambda: problems[0], poll_s=0.05)
            await storm.observe()

    run(scenario)
