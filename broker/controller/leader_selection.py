"""The next leader of a partition: pure functions from a state to the state to write, or None.

A new state has the next leader epoch; its `partition_epoch` is the version it must replace.
Source: `ControllerElection`, `PartitionLeaderElectionAlgorithms` and
`ReplicaStateMachine.doRemoveReplicasFromIsr`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from urteil.broker.zookeeper.znodes import PartitionState

NO_LEADER = -1
RECOVERED = 0
RECOVERING = 1


def first_state(
    replicas: Sequence[int], live: Collection[int], controller_epoch: int
) -> PartitionState | None:
    """All live replicas of a new partition are in sync, the first leads. None if none is live."""
    alive = tuple(replica for replica in replicas if replica in live)
    if not alive:
        return None
    return PartitionState(
        leader=alive[0], leader_epoch=0, isr=alive, controller_epoch=controller_epoch
    )


def elect_leader(
    replicas: Sequence[int], isr: Collection[int], live: Collection[int]
) -> int | None:
    """The first live replica of the assignment that is in the ISR."""
    return next((replica for replica in replicas if replica in live and replica in isr), None)


def elect_unclean(replicas: Sequence[int], live: Collection[int]) -> int | None:
    """The first live replica, in sync or not: records that only the old leader has are lost."""
    return next((replica for replica in replicas if replica in live), None)


def after_failure(
    state: PartitionState,
    replicas: Sequence[int],
    *,
    present: Collection[int],
    live: Collection[int],
    unclean: bool,
    controller_epoch: int,
) -> PartitionState | None:
    """The state after brokers left; None if it does not change.

    `present` are the registered brokers, `live` those that are not shutting down and may be
    elected. A present leader stays, and the ISR loses the members that left. Without a live member
    of the ISR there is no leader, and the ISR stays, so that only its members can lead again;
    `unclean` allows any live replica.
    """
    if state.leader in present:
        isr = tuple(replica for replica in state.isr if replica in present)
        if isr == state.isr:
            return None
        return _next(state, state.leader, isr or (state.leader,), controller_epoch)
    leader = elect_leader(replicas, state.isr, live)
    if leader is not None:
        isr = tuple(replica for replica in state.isr if replica in present)
        return _next(state, leader, isr, controller_epoch)
    if unclean and (leader := elect_unclean(replicas, live)) is not None:
        return _unclean(state, leader, controller_epoch)
    if state.leader == NO_LEADER:
        return None
    return _next(state, NO_LEADER, state.isr, controller_epoch)


def needs_unclean(
    state: PartitionState, replicas: Sequence[int], present: Collection[int], live: Collection[int]
) -> bool:
    """Whether only an unclean election could give this partition a leader."""
    return state.leader not in present and elect_leader(replicas, state.isr, live) is None


def for_shutdown(
    state: PartitionState, replicas: Sequence[int], live: Collection[int], controller_epoch: int
) -> PartitionState | None:
    """Move leadership and ISR away from brokers that are shutting down (not in `live`).

    None if no live member of the ISR can lead (the leader stays), or if nothing changes.
    """
    isr = tuple(replica for replica in state.isr if replica in live)
    leader = state.leader if state.leader in live else elect_leader(replicas, state.isr, live)
    if leader is None or leader not in isr or (leader, isr) == (state.leader, state.isr):
        return None
    return _next(state, leader, isr, controller_epoch)


def to_preferred(
    state: PartitionState, replicas: Sequence[int], live: Collection[int], controller_epoch: int
) -> PartitionState | None:
    """Move leadership to the first replica, if it is live and in sync."""
    first = replicas[0]
    if state.leader == first or first not in live or first not in state.isr:
        return None
    return _next(state, first, state.isr, controller_epoch)


def for_reassignment(
    state: PartitionState, target: Sequence[int], live: Collection[int], controller_epoch: int
) -> PartitionState | None:
    """A leader among the new replicas, in a new leader epoch; None if none of them can lead."""
    stays = state.leader in target and state.leader in live
    leader = state.leader if stays else elect_leader(target, state.isr, live)
    return None if leader is None else _next(state, leader, state.isr, controller_epoch)


def next_epoch(state: PartitionState, controller_epoch: int) -> PartitionState:
    """The same state in a new leader epoch, so that brokers accept another replica list."""
    return _next(state, state.leader, state.isr, controller_epoch)


def without_replica(
    state: PartitionState, replica: int, controller_epoch: int
) -> PartitionState | None:
    """Remove a replica from the ISR and from leadership; the last ISR member stays in the ISR.

    None if the replica is not in the ISR, or if nothing changes.
    """
    if replica not in state.isr:
        return None
    isr = tuple(other for other in state.isr if other != replica) or state.isr
    leader = NO_LEADER if state.leader == replica else state.leader
    if (leader, isr) == (state.leader, state.isr):
        return None
    return _next(state, leader, isr, controller_epoch)


def by_request(
    state: PartitionState, replicas: Sequence[int], live: Collection[int], controller_epoch: int
) -> PartitionState | None:
    """The state of an unclean ElectLeaders: a leader from the ISR if possible, else any live
    replica; None if no replica is live."""
    leader = elect_leader(replicas, state.isr, live)
    if leader is not None:
        isr = tuple(replica for replica in state.isr if replica in live)
        return _next(state, leader, isr, controller_epoch)
    leader = elect_unclean(replicas, live)
    return None if leader is None else _unclean(state, leader, controller_epoch)


def _unclean(state: PartitionState, leader: int, controller_epoch: int) -> PartitionState:
    changed = _next(state, leader, (leader,), controller_epoch)
    return replace(changed, recovery_state=RECOVERING)


def _next(
    state: PartitionState, leader: int, isr: tuple[int, ...], controller_epoch: int
) -> PartitionState:
    return replace(
        state,
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
        isr=isr,
        controller_epoch=controller_epoch,
        recovery_state=RECOVERED if leader == NO_LEADER else state.recovery_state,
    )
