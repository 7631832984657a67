from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from urteil.broker.controller import leader_selection
from urteil.broker.controller.replica_deletion import ReplicaDeletions
from urteil.broker.controller.statuses import (
    PARTITION_TRANSITIONS,
    REPLICA_TRANSITIONS,
    IllegalTransition,
    PartitionStatus,
    ReplicaStatus,
    next_partition_status,
    next_replica_status,
)
from urteil.broker.zookeeper.znodes import PartitionState


def state(leader: int, isr: tuple[int, ...], epoch: int = 5, version: int = 9) -> PartitionState:
    return PartitionState(
        leader=leader, leader_epoch=epoch, isr=isr, controller_epoch=1, partition_epoch=version
    )


def fail(
    now: PartitionState,
    replicas: tuple[int, ...],
    present: Iterable[int],
    *,
    live: Iterable[int] | None = None,
    unclean: bool = False,
) -> PartitionState | None:
    present = set(present)
    return leader_selection.after_failure(
        now,
        replicas,
        present=present,
        live=present if live is None else set(live),
        unclean=unclean,
        controller_epoch=2,
    )


def test_first_live_replica_becomes_leader_of_a_new_partition() -> None:
    made = leader_selection.first_state((3, 1, 2), {1, 2}, 7)
    assert made is not None
    assert (made.leader, made.isr, made.leader_epoch, made.controller_epoch) == (1, (1, 2), 0, 7)
    assert leader_selection.first_state((3,), {1}, 7) is None


def test_election_follows_the_order_of_the_assignment() -> None:
    made = fail(state(1, (1, 3, 2)), (1, 2, 3), {2, 3})
    assert made is not None
    assert (made.leader, made.isr, made.leader_epoch) == (2, (3, 2), 6)
    assert (made.controller_epoch, made.partition_epoch) == (2, 9)


def test_a_live_replica_outside_the_isr_does_not_lead() -> None:
    made = fail(state(1, (1, 3)), (1, 2, 3), {2})
    assert made is not None
    assert (made.leader, made.isr) == (-1, (1, 3))
    assert fail(made, (1, 2, 3), {2}) is None


def test_allowed_unclean_election_elects_any_live_replica() -> None:
    made = fail(state(1, (1, 3)), (1, 2, 3), {2}, unclean=True)
    assert made is not None
    assert (made.leader, made.isr, made.recovery_state) == (2, (2,), leader_selection.RECOVERING)
    clean = fail(state(1, (1, 3)), (1, 2, 3), {2, 3}, unclean=True)
    assert clean is not None
    assert (clean.leader, clean.recovery_state) == (3, leader_selection.RECOVERED)
    nobody = fail(state(1, (1,)), (1, 2), {4}, unclean=True)
    assert nobody is not None
    assert nobody.leader == -1


def test_a_dead_follower_leaves_the_isr_under_a_new_epoch() -> None:
    made = fail(state(1, (1, 2, 3)), (1, 2, 3), {1, 3})
    assert made is not None
    assert (made.leader, made.isr, made.leader_epoch) == (1, (1, 3), 6)
    assert fail(state(1, (1, 3)), (1, 2, 3), {1, 3}) is None


def test_leader_without_successor_stays_during_shutdown() -> None:
    now = state(1, (1,))
    assert fail(now, (1, 2), {1, 2}, live={2}) is None
    made = fail(state(3, (3, 1)), (3, 1, 2), {1, 2}, live={2})
    assert made is not None
    assert made.leader == -1  # 1 is going and may not be elected


@given(
    replicas=st.lists(st.integers(1, 6), min_size=1, max_size=5, unique=True),
    data=st.data(),
)
def test_after_any_failure(replicas: list[int], data: st.DataObject) -> None:
    """No leader from outside the ISR; no epoch goes back; a second look changes nothing."""
    isr = data.draw(st.lists(st.sampled_from(replicas), min_size=1, unique=True))
    leader = data.draw(st.sampled_from([*isr, -1]))
    present = data.draw(st.sets(st.integers(1, 6)))
    now = state(leader, tuple(isr))
    made = fail(now, tuple(replicas), present)
    if made is None:
        return
    assert made.leader_epoch == now.leader_epoch + 1
    assert made.isr
    assert set(made.isr) <= set(now.isr)
    assert made.leader == -1 or made.leader in set(now.isr) & present
    if made.leader == -1:
        assert made.isr == now.isr
        assert not set(isr) & present
    assert fail(made, tuple(replicas), present) is None


def test_shutdown_moves_leaders_and_shrinks_the_isr() -> None:
    moved = leader_selection.for_shutdown(state(1, (1, 2, 3)), (1, 2, 3), {2, 3}, 2)
    assert moved is not None
    assert (moved.leader, moved.isr) == (2, (2, 3))
    shrunk = leader_selection.for_shutdown(state(2, (1, 2)), (1, 2, 3), {2, 3}, 2)
    assert shrunk is not None
    assert (shrunk.leader, shrunk.isr) == (2, (2,))
    assert leader_selection.for_shutdown(state(1, (1,)), (1, 2), {2}, 2) is None
    assert leader_selection.for_shutdown(state(2, (2, 3)), (1, 2, 3), {2, 3}, 2) is None
    assert leader_selection.for_shutdown(state(-1, (1,)), (1, 2), {2}, 2) is None


def test_preferred_leaders() -> None:
    back = leader_selection.to_preferred(state(2, (2, 1)), (1, 2), {1, 2}, 2)
    assert back is not None
    assert (back.leader, back.isr, back.leader_epoch) == (1, (2, 1), 6)
    assert leader_selection.to_preferred(state(2, (2,)), (1, 2), {1, 2}, 2) is None
    assert leader_selection.to_preferred(state(2, (2, 1)), (1, 2), {2}, 2) is None
    assert leader_selection.to_preferred(state(1, (2, 1)), (1, 2), {1, 2}, 2) is None


def test_transition_tables_cover_every_status() -> None:
    assert set(PARTITION_TRANSITIONS) == set(PartitionStatus)
    assert set(REPLICA_TRANSITIONS) == set(ReplicaStatus)
    with pytest.raises(IllegalTransition):
        next_partition_status(PartitionStatus.NON_EXISTENT, PartitionStatus.ONLINE)
    with pytest.raises(IllegalTransition):
        next_replica_status(ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_SUCCESSFUL)


def test_deletion_waits_for_absent_brokers() -> None:
    deletions = ReplicaDeletions()
    a, b = ("t", 0), ("t", 1)
    deletions.add("t", {a: (1, 2), b: (2, 3)})
    assert deletions.start({1, 2}) == [(1, a), (2, a), (2, b)]
    assert deletions.start({1, 2}) == []
    assert not deletions.is_waiting_for_brokers("t")
    deletions.handle_response(1, a, deleted=True)
    deletions.handle_response(2, a, deleted=True)
    deletions.handle_response(2, b, deleted=False)
    assert deletions.is_waiting_for_brokers("t")
    assert deletions.complete() == []
    assert deletions.start({1, 2, 3}) == [(2, b), (3, b)]
    deletions.broker_left(3)
    deletions.handle_response(3, b, deleted=True)  # late: the request of its earlier life
    deletions.handle_response(2, b, deleted=True)
    assert deletions.complete() == []
    assert deletions.start({3}) == [(3, b)]
    deletions.handle_response(3, b, deleted=True)
    assert deletions.complete() == ["t"]
    deletions.remove("t")
    assert deletions.topics == []
