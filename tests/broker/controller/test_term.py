"""One term on paper: deletions, elections, old tools, log directories, brokers replaced;
and a failover in the middle of each."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import cast
from uuid import UUID

import pytest

from tests.broker.controller.in_memory_zookeeper import Died, PaperSession, SimulatedTerm, World
from tests.broker.controller.test_reassignments import TROUBLE, run
from urteil.broker.controller.api_error import ApiError
from urteil.broker.controller.replica_placement import assign_more, assign_replicas
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.controller.topic_admin import TopicAdmin, TopicResult
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import ControlledShutdownRequest, LeaderAndIsrRequest
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import Session
from urteil.broker.zookeeper.znodes import TopicAssignment

TP = ("t", 0)
TOPICS = {"t": {0: (1, 2), 1: (2, 3)}, "kept": {0: (3, 1)}}


async def in_trouble(
    trouble: str,
    story: Callable[[World, SimulatedTerm], Awaitable[None]],
    check: Callable[[World], None],
) -> int:
    """The story with trouble at the first, second, ... operation; after a death the next
    controller lives it again. Returns how many operations it took."""
    at = 0
    while True:
        at += 1
        world = World((1, 2, 3), TOPICS)
        term = SimulatedTerm(world, **{trouble: at})
        try:
            await term.begin()
            await story(world, term)
        except Died:
            heir = SimulatedTerm(world)
            await heir.begin()
            await story(world, heir)
        check(world)
        if at > (term.session.operations if trouble == "dies_at" else term.session.writes):
            return at


@pytest.mark.parametrize("trouble", TROUBLE)
def test_topic_deletion_survives_failover(trouble: str) -> None:
    async def story(world: World, term: SimulatedTerm) -> None:
        if znodes.topic_path("t") in world.zk.nodes:
            world.zk.put(znodes.topic_config_path("t"), znodes.encode_config({}))
            world.zk.put(znodes.delete_topic_path("t"), b"")
            await term.settle()

    def check(world: World) -> None:
        assert world.zk.children(znodes.TOPICS) == ["kept"]
        assert world.zk.children(znodes.DELETE_TOPICS) == []
        assert world.zk.children("/config/topics") == []
        assert [world.holders(("t", partition)) for partition in (0, 1)] == [set(), set()]
        assert world.holders(("kept", 0)) == {1, 3}
        kept = world.zk.state(("kept", 0))
        assert (kept.leader, kept.leader_epoch, kept.isr) == (3, 0, (3, 1))

    run(lambda: _at_least(10 if trouble == "dies_at" else 6, in_trouble(trouble, story, check)))


async def _at_least(least: int, counted: Awaitable[int]) -> None:
    assert await counted > least


@pytest.mark.parametrize("trouble", TROUBLE)
def test_broker_stops_cleanly_and_returns_empty(trouble: str) -> None:
    """Controlled shutdown, replaced by another machine of that id: never a leader that is not in
    sync, and in the end every broker has the same state."""

    async def story(world: World, term: SimulatedTerm) -> None:
        if "replaced" not in world.notes:
            if 2 in world.brokers:
                request = ControlledShutdownRequest(broker_id=2, broker_epoch=-1)
                answer = await term.act(lambda term: term.controlled_shutdown(request))
                assert list(answer.remaining_partitions) == []
                world.go(2)
            await term.settle()
            world.notes.add("replaced")
            world.come(2, empty=True)
            await term.settle()
        for tp in (TP, ("t", 1)):
            await term.catch_up(tp)

    def check(world: World) -> None:
        for tp, replicas in ((TP, {1, 2}), (("t", 1), {2, 3})):
            state = world.zk.state(tp)
            assert set(state.isr) == replicas
            assert state.leader in replicas
            assert world.holders(tp) == replicas
            for broker in replicas:
                role = world.brokers[broker].disk[tp]
                assert (role.leader, role.leader_epoch) == (state.leader, state.leader_epoch)
            for broker in world.brokers.values():
                metadata = broker.metadata[tp]
                assert (metadata.leader, set(metadata.isr)) == (state.leader, replicas)

    run(lambda: _at_least(5, in_trouble(trouble, story, check)))


@pytest.mark.parametrize("trouble", TROUBLE)
def test_log_directory_failure_survives_failover(trouble: str) -> None:
    """Reported, asked for, led elsewhere; the report is taken away."""

    async def story(world: World, term: SimulatedTerm) -> None:
        broker = world.brokers[1]
        if TP not in broker.failed:
            broker.failed.add(TP)
            event = {"version": 1, "broker": 1, "event": 1}
            path = f"{znodes.LOG_DIR_EVENTS}/log_dir_event_0000000000"
            world.zk.put(path, json.dumps(event).encode())
        await term.settle()

    def check(world: World) -> None:
        state = world.zk.state(TP)
        assert (state.leader, state.isr) == (2, (2,))
        assert world.zk.state(("kept", 0)).isr == (3, 1), "its other directory is sound"
        for broker in world.brokers.values():
            assert list(broker.metadata[TP].offline_replicas) == [1]
            assert list(broker.metadata["kept", 0].offline_replicas) == []
        assert world.zk.children(znodes.LOG_DIR_EVENTS) == []

    run(lambda: _at_least(5, in_trouble(trouble, story, check)))


def test_offline_replicas_are_announced() -> None:
    """Also of those that were not in sync when they went, and before they are in sync again."""

    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()

        def offline_replicas() -> list[list[int]]:
            return [list(world.brokers[broker].metadata[TP].offline_replicas) for broker in (1, 3)]

        for _ in range(2):
            world.go(2)
            await term.settle()
            assert offline_replicas() == [[2], [2]]
            world.come(2)
            await term.settle()
            assert offline_replicas() == [[], []]
            assert world.zk.state(TP).isr == (1,)
        request = ControlledShutdownRequest(broker_id=2, broker_epoch=-1)
        await term.act(lambda term: term.controlled_shutdown(request))
        assert offline_replicas() == [[2], [2]]

    run(scenario)


def test_failed_log_directory_returns_with_its_broker() -> None:
    async def scenario() -> None:
        world = World((1, 2), {"t": {0: (1, 2)}, "alone": {0: (1,)}})
        term = SimulatedTerm(world)
        await term.begin()
        world.brokers[1].failed |= {TP, ("alone", 0)}
        world.zk.put(
            f"{znodes.LOG_DIR_EVENTS}/log_dir_event_0000000000",
            b'{"version":1,"broker":1,"event":1}',
        )
        world.zk.put(f"{znodes.LOG_DIR_EVENTS}/log_dir_event_0000000001", b"nonsense")
        await term.settle()
        assert world.zk.state(("alone", 0)).leader == -1
        assert world.zk.state(("alone", 0)).isr == (1,)
        assert world.zk.children(znodes.LOG_DIR_EVENTS) == []
        # what the broker cannot reach it cannot delete either
        world.zk.put(znodes.delete_topic_path("alone"), b"")
        await term.settle()
        assert world.zk.children(znodes.TOPICS) == ["alone", "t"]
        world.go(1)
        await term.settle()
        world.disks[1].failed.clear()
        world.come(1)
        await term.settle()
        assert world.zk.children(znodes.TOPICS) == ["t"]
        await term.catch_up(TP)
        assert set(world.zk.state(TP).isr) == {1, 2}
        assert list(world.brokers[2].metadata[TP].offline_replicas) == []

    run(scenario)


def errors(outcomes: dict[TopicPartition, int | ApiError]) -> dict[TopicPartition, int | ErrorCode]:
    return {
        tp: outcome.error if isinstance(outcome, ApiError) else outcome
        for tp, outcome in outcomes.items()
    }


def test_requested_elections() -> None:
    async def scenario() -> None:
        world = World((1, 2, 3), {"t": {0: (1, 2), 1: (2, 1), 2: (3,)}, "gone": {0: (1,)}})
        term = SimulatedTerm(world)
        await term.begin()

        async def elect(
            asked: list[TopicPartition] | None, *, unclean: bool = False
        ) -> dict[TopicPartition, int | ErrorCode]:
            return errors(await term.act(lambda term: term.elect_leaders(asked, unclean=unclean)))

        assert set((await elect(None)).values()) == {ErrorCode.ELECTION_NOT_NEEDED}
        world.go(1)
        await term.settle()
        assert (await elect([TP, TP]))[TP] is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        world.come(1)
        await term.settle()
        assert (await elect([TP]))[TP] is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "not in sync"
        await term.catch_up(TP)
        assert await elect([TP, ("t", 9), ("u", 0)]) == {
            TP: 1,
            ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        world.go(3)
        await term.settle()
        lost = ("t", 2)
        assert (await elect([lost], unclean=True))[lost] is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        assert (await elect([TP], unclean=True))[TP] is ErrorCode.ELECTION_NOT_NEEDED
        world.go(2)
        await term.settle()
        world.zk.put(znodes.delete_topic_path("gone"), b"")
        term.term.context.pending_deletion.add("gone")
        assert await elect([("gone", 0)]) == {("gone", 0): ErrorCode.INVALID_TOPIC_EXCEPTION}

    run(scenario)


def test_an_unclean_election_at_request() -> None:
    """Of a partition whose ISR is away, though its topic does not allow such elections."""

    async def scenario() -> None:
        world = World((1, 2), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        world.go(2)
        await term.settle()
        world.go(1)
        await term.settle()
        world.come(2)
        await term.settle()
        assert (world.zk.state(TP).leader, world.zk.state(TP).isr) == (-1, (1,))
        held = await term.act(lambda term: term.elect_leaders(None, unclean=True))
        assert held == {TP: 2}
        state = world.zk.state(TP)
        assert (state.leader, state.isr, state.recovery_state) == (2, (2,), 1)

    run(scenario)


@pytest.mark.parametrize("trouble", TROUBLE)
def test_preferred_election_znode_of_old_tools(trouble: str) -> None:
    """Asked while no controller looked, or while one does; asked for nonsense; asked again."""

    async def story(world: World, term: SimulatedTerm) -> None:
        await term.act(lambda term: term.alter_reassignments({TP: (2, 1)}))
        asked = {"partitions": [{"topic": "t", "partition": 0}, {"topic": "u", "partition": 3}]}
        for data in (b"{nonsense", json.dumps(asked).encode()):
            world.zk.put(znodes.PREFERRED_REPLICA_ELECTION, data)
            await term.settle()

    def check(world: World) -> None:
        assert znodes.PREFERRED_REPLICA_ELECTION not in world.zk.nodes
        assert world.zk.state(TP).leader == 2
        assert world.zk.topic("t").partitions[0] == (2, 1)

    run(lambda: _at_least(5, in_trouble(trouble, story, check)))


def test_topics_without_ids_get_one() -> None:
    """Versions 1 and 2, then altered by a tool that leaves the id out."""

    async def scenario() -> None:
        world = World((1, 2, 3), {})
        term = SimulatedTerm(world)
        await term.begin()
        world.zk.put(znodes.topic_path("one"), b'{"version":1,"partitions":{"0":[1,2]}}')
        world.zk.put(
            znodes.topic_path("two"),
            b'{"version":2,"partitions":{"0":[2,3]},"adding_replicas":{},"removing_replicas":{}}',
        )
        await term.settle()
        made = {name: world.zk.topic(name).topic_id for name in ("one", "two")}
        assert None not in made.values()
        assert world.zk.state(("one", 0)).leader == 1
        grown = b'{"version":1,"partitions":{"0":[1,2],"1":[2,3],"2":[3,1]}}'
        world.zk.put(znodes.topic_path("one"), grown)
        await term.settle()
        assert world.zk.topic("one").topic_id == made["one"], "it is the same topic"
        assert [world.zk.state(("one", n)).leader for n in (0, 1, 2)] == [1, 2, 3]
        requests = [
            request
            for request in world.brokers[3].received
            if isinstance(request, LeaderAndIsrRequest)
        ]
        assert requests[-1].topic_states[0].topic_id == made["one"]
        heir = SimulatedTerm(world)
        await heir.begin()
        assert {name: world.zk.topic(name).topic_id for name in made} == made

    run(scenario)


def test_partitions_added_during_deletion_are_removed() -> None:
    async def scenario() -> None:
        world = World((1, 2), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        world.go(2)
        await term.settle()
        world.zk.put(znodes.delete_topic_path("t"), b"")
        await term.settle()
        known = world.zk.topic("t")
        more = replace(known, partitions={**known.partitions, 1: (1, 2)})
        world.zk.put(znodes.topic_path("t"), znodes.encode_topic(more))
        await term.settle()
        assert world.zk.topic("t") == known
        assert world.zk.children(znodes.partitions_path("t")) == ["0"]
        world.come(2)
        await term.settle()
        assert world.zk.children(znodes.TOPICS) == []

    run(scenario)


def grow(world: World, count: int, *replicas: tuple[int, ...], **trouble: int) -> TopicResult:
    admin = TopicAdmin(
        cast(Session, PaperSession(world.zk, **trouble)),
        random.Random(1),
        default_partitions=1,
        default_replication_factor=1,
        properties={},
    )
    outcome: list[TopicResult] = []

    async def scenario() -> None:
        outcome.append(
            await admin.add_partitions(await admin.racks(), "t", count, replicas or None)
        )

    run(scenario)
    return outcome[0]


@pytest.mark.parametrize("trouble", ["unheard", "undone"])
def test_partitions_are_added_once(trouble: str) -> None:
    world = World((1, 2, 3), {"t": {0: (1, 2)}})
    assert grow(world, 3, (2, 3), (3, 1), **{trouble: 1}).error is ErrorCode.NONE
    assert world.zk.topic("t").partitions == {0: (1, 2), 1: (2, 3), 2: (3, 1)}
    assert grow(world, 3).error is ErrorCode.INVALID_PARTITIONS
    begun = TopicAssignment(partitions={0: (3, 1, 2)}, adding={0: (3,)}, removing={0: (2,)})
    world.zk.put(znodes.topic_path("t"), znodes.encode_topic(begun))
    assert grow(world, 5).error is ErrorCode.REASSIGNMENT_IN_PROGRESS
    world.zk.remove(znodes.topic_path("t"))
    assert grow(world, 5).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_added_partitions_continue_the_placement() -> None:
    """With the same start, added ones are those a topic made at once would have had."""
    unaware = dict.fromkeys(range(1, 6), None)
    assert assign_more(unaware, 2, (3, 4, 5), 4) == {
        2: (5, 3, 4), 3: (1, 4, 5), 4: (2, 5, 1), 5: (3, 2, 4),
    }  # fmt: skip
    racks = {broker: f"r{broker % 2}" for broker in range(1, 7)}
    first = assign_replicas(dict(racks), 4, 3, random.Random(5))
    replicas_of = {**first, **assign_more(dict(racks), 4, first[0], 6)}
    assert sorted(replicas_of) == list(range(10))
    for replicas in replicas_of.values():
        assert len({racks[replica] for replica in replicas}) == 2
    leaders = Counter(replicas[0] for replicas in replicas_of.values())
    assert max(leaders.values()) <= 3


@pytest.mark.parametrize("settings", [b"{nonsense", b"[]", b'{"config": {"retention.ms": 5}}'])
def test_unreadable_settings_do_not_stop_the_controller(settings: bytes) -> None:
    """They are asked for where only an unclean election could help."""

    async def scenario() -> None:
        world = World((1, 2), {"t": {0: (2,)}, "u": {0: (2, 1)}})
        term = SimulatedTerm(world)
        await term.begin()
        world.zk.put(znodes.topic_config_path("t"), settings)
        world.go(2)
        await term.settle()
        assert world.zk.state(("t", 0)).leader == -1
        assert world.zk.state(("u", 0)).leader == 1

    run(scenario)


def test_recreated_topic_survives_the_deletion_of_its_predecessor() -> None:
    """Its nodes are removed while its deletion waits for a broker, which then comes back."""

    async def scenario() -> None:
        world = World((1, 2), {"t": {0: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        world.go(2)
        world.zk.put(znodes.delete_topic_path("t"), b"")
        await term.settle()
        assert term.term.is_deleted("t")
        for path in sorted(world.zk.nodes, reverse=True):
            if path.startswith(znodes.topic_path("t")) or path == znodes.delete_topic_path("t"):
                world.zk.remove(path)
        anew = TopicAssignment(partitions={0: (1, 2)}, topic_id=UUID(int=9))
        world.zk.put(znodes.topic_path("t"), znodes.encode_topic(anew))
        await term.settle()
        assert world.holders(TP) == {1}
        world.come(2, empty=True)
        await term.settle()
        assert world.holders(TP) == {1, 2}
        assert term.term.has_leaders("t")

    run(scenario)


@pytest.mark.parametrize("data", [b"", b"{nonsense", b"[]", b'{"version": 1}'])
def test_unreadable_topic_does_not_stop_the_controller(data: bytes) -> None:
    """Somebody made it by hand; it is taken in once it is mended."""

    async def scenario() -> None:
        world = World((1, 2), {"t": {0: (1, 2)}})
        world.zk.put(znodes.topic_path("bad"), data)
        term = SimulatedTerm(world)
        await term.begin()
        assert term.term.has_leaders("t")
        mended = TopicAssignment(partitions={0: (2,)})
        world.zk.put(znodes.topic_path("bad"), znodes.encode_topic(mended))
        await term.settle()
        assert term.term.has_leaders("bad")

    run(scenario)


STATE = b'{"leader": 1, "leader_epoch": %s, "isr": [1, 2], "controller_epoch": 1, "version": 1}'


@pytest.mark.parametrize("data", [b"", b"{nonsense", b"[]", b'{"version": 1}', STATE % b'"x"'])
def test_unreadable_state_does_not_end_the_term(data: bytes) -> None:
    """The partition waits until somebody mends it; the others go on."""

    async def scenario() -> None:
        world = World((1, 2), {"t": {0: (1, 2), 1: (1, 2)}})
        term = SimulatedTerm(world)
        await term.begin()
        world.zk.put(znodes.state_path("t", 0), data)
        heir = SimulatedTerm(world)
        await heir.begin()
        world.go(1)
        await heir.settle()
        assert world.zk.nodes[znodes.state_path("t", 0)].data == data
        assert world.zk.state(("t", 1)).leader == 2
        world.zk.put(znodes.state_path("t", 0), STATE % b"7")
        world.come(1)
        await heir.settle()
        assert world.zk.state(("t", 0)).leader_epoch >= 7
        assert heir.term.has_leaders("t")

    run(scenario)
