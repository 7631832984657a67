"""Questions about members that are late, or absent, in a rebalance, and about a group's end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest

from urteil.harness.conformance.group_member import REBALANCE_MS, alone, member, pair
from urteil.harness.conformance.question import (
    Brokers,
    Question,
    check,
    name_of,
    names,
    together,
)

Told = tuple[int, str]
LATE_S, POLL_S = REBALANCE_MS / 1000 + 4, 0.2
"""So long after a rebalance began whoever did not come must be out of the group."""


def _until(told: Callable[[], str], answer: str) -> str:
    """As `awaited`, as long as a rebalance may take."""
    deadline = time.monotonic() + LATE_S
    while (found := told()) != answer and time.monotonic() < deadline:
        threading.Event().wait(POLL_S)
    return found


def _never_syncs(brokers: Brokers, name: str) -> Told:
    """Who was given a generation and does not ask for its part of it, though it is heard of, is
    put out (KAFKA-12890), and the others go on without it."""
    members = [member(brokers, name) for _ in range(2)]
    (leader,) = {one.leader for one in pair(members)}
    first, second = sorted(members, key=lambda one: one.id != leader)
    check("SyncGroup", first.sync({first.id: b"all"}).error_code)

    def heard() -> str:
        second.heartbeat()
        return name_of(first.heartbeat())

    told = _until(heard, "RebalanceInProgress")
    first.joined()
    return first.node, f"{told}, then {name_of(second.heartbeat())}"


def _never_rejoins(brokers: Brokers, name: str) -> Told:
    """Who is heard of, and does not join again, is waited for as long as it wanted."""
    one, other = alone(brokers, name), member(brokers, name)
    began = time.monotonic()

    def join() -> str:
        other.joined()
        early = time.monotonic() - began < REBALANCE_MS / 1000 - 0.5
        return "at once" if early else "waited for"

    def live() -> str:
        return _until(lambda: name_of(one.heartbeat()), "UnknownMemberId")

    return one.node, ", then ".join(together([join, live]))


def _between(brokers: Brokers, name: str) -> Told:
    """A member has joined, and nobody has been given anything yet."""
    brokers.create(name, [[brokers.nodes[0]]])
    one = member(brokers, name)
    one.joined()
    told = [one.heartbeat(), *one.commit(name, {0: 3})]
    check("SyncGroup", one.sync({one.id: b"all"}).error_code)
    return one.node, f"{names([*told, *one.commit(name, {0: 4})])}, {one.positions()}"


def _subscriptions(brokers: Brokers, name: str) -> Told:
    """Who leads is told what the others want, and they are not."""
    members = [member(brokers, name, protocols={"own": mark}) for mark in (b"one", b"other")]
    told = pair(members)
    wanted = [sorted(bytes(each.metadata).decode() for each in one.members) for one in told]
    return members[0].node, str(wanted)


def _emptied(brokers: Brokers, name: str) -> Told:
    """A group without members is deleted, with its positions; then there is none."""
    brokers.create(name, [[brokers.nodes[0]]])
    one = member(brokers, name)
    check("OffsetCommit", one.commit(name, {0: 7})[0])

    def delete() -> int:
        (told,) = one.ask(DeleteGroupsRequest[1](groups_names=[name])).results
        return int(told.error_code)

    told = names([delete(), delete()])
    (described,) = one.ask(DescribeGroupsRequest[4](groups=[name])).groups
    return one.node, f"{told}, {described.group_state}, {one.positions()}"


def _listed_by_state(brokers: Brokers, name: str) -> Told:
    one = alone(brokers, name)

    def listed(state: str) -> bool:
        told = one.ask(ListGroupsRequest[4](states_filter=[state])).groups
        return name in {each.group_id for each in told}

    return one.node, f"Stable {listed('Stable')}, Empty {listed('Empty')}"


def _nobody_leaves(brokers: Brokers, name: str) -> Told:
    one = alone(brokers, name)
    other = member(brokers, name, id="nobody")
    return one.node, names([*other.leave(), one.heartbeat()])


REBALANCES = (
    Question(
        about="what is told when a member does not ask what it is given, and then to that member",
        answer="RebalanceInProgress, then UnknownMemberId",
        ask=_never_syncs,
    ),
    Question(
        about="a member that does not join again, though it is heard of",
        answer="waited for, then UnknownMemberId",
        ask=_never_rejoins,
    ),
    Question(
        about="a heartbeat and a position before a generation's assignment, and one after it",
        answer="No, RebalanceInProgress, No, 0:4",
        ask=_between,
    ),
    Question(
        about="what two members want, as the leader and the other one are told",
        answer=str([["one", "other"], []]),
        ask=_subscriptions,
    ),
    Question(
        about="a group that is deleted, twice, and what is left of it",
        answer="No, GroupIdNotFound, Dead, none",
        ask=_emptied,
    ),
    Question(
        about="ListGroups of a stable group, by two states (KIP-518)",
        answer="Stable True, Empty False",
        ask=_listed_by_state,
    ),
    Question(
        about="somebody unknown leaves a group", answer="UnknownMemberId, No", ask=_nobody_leaves
    ),
)
