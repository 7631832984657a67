"""Questions about members that are late or absent in a rebalance, and about the end of a group."""

from __future__ import annotations

from collections.abc import Callable

from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest

from urteil.harness.conformance.group_member import (
    REBALANCE_MS,
    join_alone,
    join_in_parallel,
    member,
)
from urteil.harness.conformance.question import (
    BrokerAnswer,
    Brokers,
    Question,
    await_value,
    check,
    name_of,
    names,
)

LATE_S, POLL_S = REBALANCE_MS / 1000 + 4, 0.2
"""By this time after its begin, a rebalance has removed every absent member."""


def _await_value(brokers: Brokers, read: Callable[[], str], answer: str) -> str:
    """As `await_value`, for the time of a rebalance."""
    return await_value(brokers, read, answer, deadline_s=LATE_S, poll_s=POLL_S)


def _omit_sync(brokers: Brokers, name: str) -> BrokerAnswer:
    """A member that joined and heartbeats but never sends SyncGroup is removed (KAFKA-12890), and
    the others continue."""
    members = [member(brokers, name) for _ in range(2)]
    (leader,) = {join.leader for join in join_in_parallel(members)}
    first, second = sorted(members, key=lambda member: member.id != leader)
    check("SyncGroup", first.sync({first.id: b"all"}).error_code)

    def send_heartbeats() -> str:
        second.heartbeat()
        return name_of(first.heartbeat())

    result = _await_value(brokers, send_heartbeats, "RebalanceInProgress")
    first.join_or_fail()
    return first.node, f"{result}, then {name_of(second.heartbeat())}"


def _omit_rejoin(brokers: Brokers, name: str) -> BrokerAnswer:
    """A member that heartbeats but does not rejoin is waited for until its rebalance timeout."""
    joined, other = join_alone(brokers, name), member(brokers, name)
    began = brokers.environment.monotonic_s()

    def join() -> str:
        other.join_or_fail()
        early = brokers.environment.monotonic_s() - began < REBALANCE_MS / 1000 - 0.5
        return "at once" if early else "waited for"

    def heartbeat_error() -> str:
        return _await_value(brokers, lambda: name_of(joined.heartbeat()), "UnknownMemberId")

    return joined.node, ", then ".join(brokers.environment.run_all([join, heartbeat_error]))


def _commit_before_sync(brokers: Brokers, name: str) -> BrokerAnswer:
    """A member has joined, and no assignment exists yet."""
    brokers.create(name, [[brokers.nodes[0]]])
    committer = member(brokers, name)
    committer.join_or_fail()
    results = [committer.heartbeat(), *committer.commit(name, {0: 3})]
    check("SyncGroup", committer.sync({committer.id: b"all"}).error_code)
    return (
        committer.node,
        f"{names([*results, *committer.commit(name, {0: 4})])}, {committer.positions()}",
    )


def _read_subscriptions(brokers: Brokers, name: str) -> BrokerAnswer:
    """The leader receives the members' subscriptions; the others do not."""
    members = [member(brokers, name, protocols={"own": mark}) for mark in (b"one", b"other")]
    result = join_in_parallel(members)
    expected = [sorted(bytes(each.metadata).decode() for each in join.members) for join in result]
    return members[0].node, str(expected)


def _delete_empty_group(brokers: Brokers, name: str) -> BrokerAnswer:
    """A group without members is deleted with its offsets; then it does not exist."""
    brokers.create(name, [[brokers.nodes[0]]])
    committer = member(brokers, name)
    check("OffsetCommit", committer.commit(name, {0: 7})[0])

    def delete() -> int:
        (entry,) = committer.send(DeleteGroupsRequest[1](groups_names=[name])).results
        return int(entry.error_code)

    result = names([delete(), delete()])
    (description,) = committer.send(DescribeGroupsRequest[4](groups=[name])).groups
    return committer.node, f"{result}, {description.group_state}, {committer.positions()}"


def _list_by_state(brokers: Brokers, name: str) -> BrokerAnswer:
    member = join_alone(brokers, name)

    def is_listed(state: str) -> bool:
        response = member.send(ListGroupsRequest[4](states_filter=[state])).groups
        return name in {each.group_id for each in response}

    return member.node, f"Stable {is_listed('Stable')}, Empty {is_listed('Empty')}"


def _leave_as_unknown(brokers: Brokers, name: str) -> BrokerAnswer:
    joined = join_alone(brokers, name)
    other = member(brokers, name, id="nobody")
    return joined.node, names([*other.leave(), joined.heartbeat()])


REBALANCES = (
    Question(
        about="heartbeats when a member does not send SyncGroup, and then of that member",
        answer="RebalanceInProgress, then UnknownMemberId",
        ask=_omit_sync,
    ),
    Question(
        about="a member that heartbeats but does not rejoin",
        answer="waited for, then UnknownMemberId",
        ask=_omit_rejoin,
    ),
    Question(
        about="a heartbeat and a commit before a generation's assignment, and a commit after it",
        answer="No, RebalanceInProgress, No, 0:4",
        ask=_commit_before_sync,
    ),
    Question(
        about="the members' subscriptions in the JoinGroup responses of the leader "
        "and the other one",
        answer=str([["one", "other"], []]),
        ask=_read_subscriptions,
    ),
    Question(
        about="a group that is deleted twice, and its state afterwards",
        answer="No, GroupIdNotFound, Dead, none",
        ask=_delete_empty_group,
    ),
    Question(
        about="ListGroups of a stable group, by two states (KIP-518)",
        answer="Stable True, Empty False",
        ask=_list_by_state,
    ),
    Question(
        about="an unknown member leaves a group",
        answer="UnknownMemberId, No",
        ask=_leave_as_unknown,
    ),
)
