"""Reassignments on paper: what they leave behind, whatever happens in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.broker.controller.in_memory_zookeeper import Died, SimulatedTerm, World
from urteil.broker.controller.replica_assignment import ReplicaAssignment, find_target_error
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.controller.term import Term
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import LeaderAndIsrRequest, StopReplicaRequest
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.znodes import PartitionState, TopicAssignment

TP = ("t", 0)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(120):
            await scenario()

    asyncio.run(bounded())


def test_the_table_in_the_comment_of_apache_kafkas_controller() -> None:
    """ORS = {1,2,3}, TRS = {4,5,6}, and what is made of it by a second and third thought."""
    begun = ReplicaAssignment((1, 2, 3)).to((4, 5, 6))
    assert begun == ReplicaAssignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert (begun.origin, begun.target) == ((1, 2, 3), (4, 5, 6))
    assert begun.to((3, 7)) == ReplicaAssignment((3, 7, 1, 2), (7,), (1, 2))
    assert begun.to(begun.origin) == ReplicaAssignment((1, 2, 3))
    assert begun.complete() == ReplicaAssignment((4, 5, 6))
    assert ReplicaAssignment((1, 2, 3)).to((3, 1, 2)) == ReplicaAssignment((3, 1, 2))
    overlapping = ReplicaAssignment((1, 2, 3)).to((3, 4, 2))
    assert overlapping == ReplicaAssignment((3, 4, 2, 1), (4,), (1,))
    assert overlapping.origin == (3, 2, 1), "the first order is not to be had any more"


@pytest.mark.parametrize(
    ("isr", "live", "complete"),
    [
        ((1, 2, 3), (1, 2, 3), False),
        ((1, 4), (1, 4, 5), False),
        ((1, 4, 5), (1, 4, 5), True),
        ((4, 5), (1, 5), True),
        ((1, 4, 5), (1, 2, 3), False),
    ],
)
def test_reassignment_completes_with_targets_in_sync_and_a_leader(
    isr: tuple[int, ...], live: tuple[int, ...], complete: bool
) -> None:
    assert ReplicaAssignment((1, 2, 3)).to((4, 5)).is_complete(isr, live) is complete


def test_rejected_targets() -> None:
    now, live = ReplicaAssignment((1, 2)), {1, 2, 3}
    for target in ((), (1, 1), (1, -1), (1, 4)):
        assert find_target_error(now, target, live, (1, 2)), target
    assert find_target_error(now, (3, 1), live, (1, 2)) is None
    assert find_target_error(now, (2, 9), {2, 9}, (2,)) is None
    begun = now.to((3,))
    assert find_target_error(begun, begun.origin, live, (3,)), "only 3 has what was acknowledged"
    assert find_target_error(begun, begun.origin, live, (3, 2)) is None


async def alter(
    term: SimulatedTerm, target: Sequence[int] | None, tp: TopicPartition = TP
) -> ErrorCode:
    results = await term.act(lambda term: term.alter_reassignments({tp: target}))
    refusal = results[tp]
    return ErrorCode.NONE if refusal is None else refusal.error


def assigned(world: World, tp: TopicPartition = TP) -> ReplicaAssignment:
    topic, partition = world.zk.topic(tp[0]), tp[1]
    return ReplicaAssignment(
        topic.partitions[partition],
        topic.adding.get(partition, ()),
        topic.removing.get(partition, ()),
    )


def test_step_by_step() -> None:
    async def scenario() -> None:
        world = World((1, 2, 3, 4), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        assert world.zk.state(TP).isr == (1, 2)
        assert await alter(term, (3, 4)) is ErrorCode.NONE
        assert assigned(world) == ReplicaAssignment((3, 4, 1, 2), (3, 4), (1, 2))
        state = world.zk.state(TP)
        assert (state.leader, state.leader_epoch, state.isr) == (1, 1, (1, 2))
        roles = {id: world.brokers[id].disk[TP] for id in (1, 2, 3, 4)}
        assert {id: role.is_new for id, role in roles.items()} == {
            1: False,
            2: False,
            3: True,
            4: True,
        }
        for role in roles.values():
            assert (tuple(role.adding_replicas), tuple(role.removing_replicas)) == ((3, 4), (1, 2))
        under_way = await term.term.reassignments(None)
        assert under_way == {TP: ReplicaAssignment((3, 4, 1, 2), (3, 4), (1, 2))}
        assert await term.term.reassignments([("t", 9)]) == {}
        await term.catch_up(TP)
        assert assigned(world) == ReplicaAssignment((3, 4))
        state = world.zk.state(TP)
        assert (state.leader, set(state.isr)) == (3, {3, 4})
        assert state.leader_epoch == 4, "one for the leader, one for each that left the ISR"
        assert world.holders(TP) == {3, 4}
        assert world.brokers[1].metadata[TP].replicas == (3, 4)
        assert await term.term.reassignments(None) == {}

    run(scenario)


@pytest.mark.parametrize(
    ("target", "replicas", "leader"),
    [((2, 1), (2, 1), 1), ((1,), (1,), 1), ((2,), (2,), 2), ((1, 2, 3), (1, 2, 3), 1)],
)
def test_order_and_replication_factor(
    target: tuple[int, ...], replicas: tuple[int, ...], leader: int
) -> None:
    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        await alter(term, target)
        await term.catch_up(TP)
        assert assigned(world) == ReplicaAssignment(replicas)
        state = world.zk.state(TP)
        assert (state.leader, set(state.isr)) == (leader, set(replicas))
        assert world.holders(TP) == set(replicas)

    run(scenario)


def test_cancelled_and_replaced() -> None:
    async def scenario() -> None:
        world = World((1, 2, 3, 4), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        assert await alter(term, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        assert await alter(term, None, ("t", 7)) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        assert await alter(term, (1,), ("t", 7)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await alter(term, (1,), ("u", 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await alter(term, (1, 9)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        await alter(term, (3, 4))
        assert await alter(term, (1, 4)) is ErrorCode.NONE
        assert assigned(world) == ReplicaAssignment((1, 4, 2), (4,), (2,))
        assert world.holders(TP) == {1, 2, 4}
        assert await alter(term, None) is ErrorCode.NONE
        assert assigned(world) == ReplicaAssignment((1, 2))
        assert world.holders(TP) == {1, 2}
        assert world.zk.state(TP).isr == (1, 2)

    run(scenario)


def test_leader_among_cancelled_targets_is_replaced() -> None:
    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (1,)}})
        term = SimulatedTerm(world)
        await term.begin()
        await alter(term, (2, 3))
        world.go(3)
        await term.settle()
        await term.catch_up(TP)
        assert set(world.zk.state(TP).isr) == {1, 2}
        await term.act(lambda term: term.elect_leaders([TP], unclean=False))
        assert world.zk.state(TP).leader == 2
        world.go(1)
        await term.settle()
        assert await alter(term, None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        world.come(1)
        await term.settle()
        await term.catch_up(TP)
        assert await alter(term, None) is ErrorCode.NONE
        state = world.zk.state(TP)
        assert (state.leader, state.isr) == (1, (1,))
        assert world.holders(TP) == {1}

    run(scenario)


def test_reassignment_waits_for_absent_targets() -> None:
    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        await alter(term, (2, 3))
        world.go(3)
        await term.settle()
        await term.catch_up(TP)
        assert assigned(world) == ReplicaAssignment((2, 3, 1), (3,), (1,))
        world.come(3, empty=True)
        await term.settle()
        assert world.brokers[3].disk[TP].is_new
        await term.catch_up(TP)
        assert assigned(world) == ReplicaAssignment((2, 3))
        assert world.holders(TP) == {2, 3}

    run(scenario)


def test_last_live_copy_is_not_deleted() -> None:
    """The targets are in sync but have just died: the old ones wait for them."""

    async def scenario() -> None:
        world = World((1, 2), {"t": {0: (1,)}})
        term = SimulatedTerm(world)
        await term.begin()
        await alter(term, (2,))
        state = world.zk.state(TP)
        term.term.context.shutting_down.add(2)
        wide = znodes.encode_state(
            znodes.PartitionState(
                leader=1, leader_epoch=state.leader_epoch, isr=(1, 2), controller_epoch=1
            )
        )
        world.zk.put(znodes.state_path(*TP), wide)
        term.term.context.record(TP, world.zk.state(TP))
        await term.act(Term.finish_reassignments)
        assert assigned(world).is_under_way
        assert 1 in world.holders(TP)

    run(scenario)


def test_deletion_starts_after_the_reassignment() -> None:
    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        await alter(term, (2, 3))
        world.zk.put(znodes.delete_topic_path("t"), b"")
        await term.settle()
        assert world.zk.children(znodes.TOPICS) == ["t"]
        assert await alter(term, None) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        await term.catch_up(TP)
        assert world.zk.children(znodes.TOPICS) == []
        assert world.zk.children(znodes.DELETE_TOPICS) == []
        assert world.holders(TP) == set()

    run(scenario)


def test_concurrently_added_partitions_are_kept() -> None:
    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        more = TopicAssignment(
            partitions={0: (1, 2), 1: (2, 3)}, topic_id=world.zk.topic("t").topic_id
        )
        # the watch has not been looked at when the reassignment is written
        world.zk.put(znodes.topic_path("t"), znodes.encode_topic(more))
        await alter(term, (2, 3))
        assert world.zk.topic("t").partitions == {0: (2, 3, 1), 1: (2, 3)}
        assert world.zk.state(("t", 1)).isr == (2, 3)

    run(scenario)


def test_old_tools_reassign_through_a_znode() -> None:
    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (1,), 1: (1,)}})
        term = SimulatedTerm(world)
        await term.begin()
        asked = {TP: (2,), ("t", 1): (3,), ("t", 5): (1,), ("u", 0): (1,)}
        world.zk.put(znodes.REASSIGN_PARTITIONS, znodes.encode_reassignments(asked))
        await term.settle()
        node = world.zk.nodes[znodes.REASSIGN_PARTITIONS]
        assert znodes.decode_reassignments(node.data) == {TP: (2,), ("t", 1): (3,)}
        epoch = world.zk.state(TP).leader_epoch
        await term.catch_up(("t", 1))
        assert world.zk.state(TP).leader_epoch == epoch, "what waits is not begun again"
        await alter(term, (3,))  # newer, by the API
        assert znodes.REASSIGN_PARTITIONS not in world.zk.nodes
        await term.catch_up(TP)
        assert world.zk.topic("t").partitions == {0: (3,), 1: (3,)}
        world.zk.put(znodes.REASSIGN_PARTITIONS, b"{nonsense")
        await term.settle()
        assert await alter(term, (1,)) is ErrorCode.NONE

    run(scenario)


TROUBLE = ("dies_at", "unheard", "undone")


async def to_the_end(world: World, term: SimulatedTerm) -> None:
    """What an administrator and the leader do until it is done, once more after a failover."""
    await term.begin()
    if assigned(world) != ReplicaAssignment((3, 4)) and not assigned(world).is_under_way:
        assert await alter(term, (3, 4)) is ErrorCode.NONE
    await term.catch_up(TP)


@pytest.mark.parametrize("trouble", TROUBLE)
def test_failover_and_lost_answers_at_every_operation(trouble: str) -> None:
    """Ends always the same: new replicas, one of them leading, nothing left on the old ones."""

    async def once(at: int) -> bool:
        world = World((1, 2, 3, 4), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world, **{trouble: at})
        orphans = False
        try:
            await to_the_end(world, term)
        except Died:
            # written as complete, and ended before StopReplica was sent: as with Kafka's
            orphans = assigned(world) == ReplicaAssignment((3, 4))
            await to_the_end(world, SimulatedTerm(world))
        assert assigned(world) == ReplicaAssignment((3, 4))
        state = world.zk.state(TP)
        assert state.leader in (3, 4)
        assert set(state.isr) == {3, 4}
        assert world.holders(TP) == {3, 4} or orphans
        leader = world.brokers[state.leader].disk[TP]
        assert (leader.leader, leader.leader_epoch) == (state.leader, state.leader_epoch)
        return at <= (term.session.operations if trouble == "dies_at" else term.session.writes)

    async def scenario() -> None:
        at = 1
        while await once(at):
            at += 1
        assert at > 10

    run(scenario)


@pytest.mark.parametrize("trouble", TROUBLE)
def test_cancelled_reassignment_survives_failover(trouble: str) -> None:
    async def once(at: int) -> bool:
        world = World((1, 2, 3, 4), {"t": {0: (1, 2)}})
        first = SimulatedTerm(world)
        await first.begin()
        await alter(first, (3, 4))
        term = SimulatedTerm(world, **{trouble: at})
        try:
            await term.begin()
            await alter(term, None)
        except Died:
            term = SimulatedTerm(world)
            await term.begin()
            if assigned(world).is_under_way:
                assert await alter(term, None) is ErrorCode.NONE
        assert assigned(world) == ReplicaAssignment((1, 2))
        state = world.zk.state(TP)
        assert (state.leader, state.isr) == (1, (1, 2))
        return at <= (term.session.operations if trouble == "dies_at" else term.session.writes)

    async def scenario() -> None:
        at = 1
        while await once(at):
            at += 1
        assert at > 3

    run(scenario)


def test_receivers_of_each_request() -> None:
    """Removed replicas hear of their deletion alone, never of the new epochs."""

    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        await alter(term, (2, 3))
        world.brokers[1].received.clear()
        await term.catch_up(TP)
        kinds = [type(request) for request in world.brokers[1].received]
        assert LeaderAndIsrRequest not in kinds
        (stop,) = (
            request
            for request in world.brokers[1].received
            if isinstance(request, StopReplicaRequest)
        )
        (state,) = stop.topic_states[0].partition_states
        assert state.delete_partition
        assert state.leader_epoch == world.zk.state(TP).leader_epoch

    run(scenario)


def led_by_a_new_one() -> World:
    """`t` goes from 1 and 2 to 3 and 4; 3 is in sync already, and leads."""
    world = World((1, 2, 3, 4, 5), {})
    assignment = TopicAssignment(
        partitions={0: (3, 4, 1, 2)}, adding={0: (3, 4)}, removing={0: (1, 2)}
    )
    world.zk.put(znodes.topic_path("t"), znodes.encode_topic(assignment))
    state = PartitionState(leader=3, leader_epoch=5, isr=(1, 2, 3), controller_epoch=0)
    world.zk.put(znodes.state_path(*TP), znodes.encode_state(state))
    return world


def test_leader_outside_the_target_is_replaced_at_once() -> None:
    """The new targets could not catch up with nobody."""

    async def scenario() -> None:
        world = led_by_a_new_one()
        term = SimulatedTerm(world)
        await term.begin()
        assert await alter(term, (5, 1)) is ErrorCode.NONE
        assert assigned(world) == ReplicaAssignment((5, 1, 2), (5,), (2,))
        state = world.zk.state(TP)
        assert (state.leader, state.isr) == (1, (1, 2))
        assert world.holders(TP) == {1, 2, 5}
        role = world.brokers[5].disk[TP]
        assert (role.leader, role.leader_epoch) == (1, state.leader_epoch)

    run(scenario)


@pytest.mark.parametrize("target", [None, (5, 1)])
def test_replacement_of_a_leader_outside_the_target_survives_failover(
    target: tuple[int, ...] | None,
) -> None:
    """Whoever takes over knows nothing but what is written: no replica in sync or leading that
    the assignment does not name, and none left on a disk that was in sync."""

    async def once(at: int) -> bool:
        world = led_by_a_new_one()
        await SimulatedTerm(world).begin()
        term = SimulatedTerm(world, dies_at=at)
        try:
            await term.begin()
            await alter(term, target)
        except Died:
            term = SimulatedTerm(world)
            await term.begin()
            if assigned(world).target == (3, 4):
                assert await alter(term, target) is ErrorCode.NONE
        replicas = assigned(world).replicas
        assert replicas == ((1, 2) if target is None else (5, 1, 2))
        state = world.zk.state(TP)
        assert (state.leader, state.isr) == (1, (1, 2))
        assert 3 not in world.holders(TP)
        for replica in replicas:
            role = world.brokers[replica].disk[TP]
            assert (role.leader, role.leader_epoch) == (1, state.leader_epoch)
        return at <= term.session.operations

    async def scenario() -> None:
        at = 1
        while await once(at):
            at += 1
        assert at > 10

    run(scenario)


def test_leaders_are_not_rebalanced_while_replicas_are_replaced() -> None:
    """As Apache Kafka: `checkAndTriggerAutoLeaderRebalance`."""

    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (1, 2), 1: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        world.go(1)
        await term.settle()
        world.come(1)
        await term.settle()
        for partition in (0, 1):
            await term.catch_up(("t", partition))
        await alter(term, (1, 3))
        await term.act(lambda term: term.rebalance_leaders(0))
        assert world.zk.state(("t", 1)).leader == 2
        await alter(term, None)
        await term.act(lambda term: term.rebalance_leaders(0))
        assert world.zk.state(("t", 1)).leader == 1

    run(scenario)


@pytest.mark.parametrize("by_request", [False, True])
def test_unclean_leader_among_targets_completes_the_reassignment(
    by_request: bool,
) -> None:
    """No leader proposes anything then: its ISR is what it is."""

    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (1,)}})
        if not by_request:
            allowed = znodes.encode_config({"unclean.leader.election.enable": "true"})
            world.zk.put(znodes.topic_config_path("t"), allowed)
        term = SimulatedTerm(world)
        await term.begin()
        await alter(term, (3,))
        world.go(1)
        await term.settle()
        if by_request:
            await term.act(lambda term: term.elect_leaders([TP], unclean=True))
        assert world.zk.state(TP).isr == (3,)
        assert assigned(world) == ReplicaAssignment((3,))

    run(scenario)
