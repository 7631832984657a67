"""The state machine of a group, with explicit time."""

from __future__ import annotations

import itertools
from typing import Any

from urteil.broker.groups.group import Group
from urteil.broker.groups.group_state import GroupState
from urteil.broker.groups.member import JoinRequest, JoinResult, SyncResult
from urteil.broker.wire.errors import ErrorCode

IDS = itertools.count()
SESSION_MS = 10_000
REBALANCE_MS = 60_000


class Client:
    """One member's side: what it asked, what it was answered."""

    def __init__(self, group: Group, name: str, **options: Any) -> None:
        self.group = group
        self.name = name
        self.instance_id = options.get("instance_id")
        self.protocols = options.get("protocols", (("range", name.encode()),))
        self.member_id = ""
        self.joins: list[JoinResult] = []
        self.syncs: list[SyncResult] = []

    def join(self, now_ms: float, *, needs_known_id: bool = False) -> None:
        request = JoinRequest(
            member_id=self.member_id,
            instance_id=self.instance_id,
            client_id=self.name,
            client_host="/198.18.0.1",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=self.protocols,
            needs_known_id=needs_known_id,
            new_member_id=f"{self.name}-{next(IDS)}",
        )
        if self.group.join(request, now_ms, self._joined):
            self.group.complete_return(request, ErrorCode.NONE, now_ms)

    def _joined(self, result: JoinResult) -> None:
        self.joins.append(result)
        if result.error in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = result.member_id

    def sync(self, now_ms: float) -> bool:
        return self.group.sync(
            self.member_id, self.instance_id, self.generation, None, None, now_ms, self.syncs.append
        )

    @property
    def generation(self) -> int:
        return self.joins[-1].generation

    def heartbeat(self, now_ms: float) -> ErrorCode:
        return self.group.heartbeat(self.member_id, self.instance_id, self.generation, now_ms)


def new_group(*, initial_delay_ms: int = 0, max_size: int = 100) -> Group:
    return Group("g", initial_delay_ms=initial_delay_ms, max_size=max_size)


def stable(*names: str, **options: Any) -> tuple[Group, list[Client]]:
    """A stable group of these members at time 0; each has its own name as assignment."""
    group = new_group()
    clients = [Client(group, name, **options) for name in names]
    clients[0].join(0)
    for client in clients[1:]:
        client.join(0)
    clients[0].join(0)
    settle(group, clients, 0)
    return group, clients


def settle(group: Group, clients: list[Client], now_ms: float) -> None:
    for client in clients:
        client.sync(now_ms)
    leader = next(c for c in clients if c.member_id == group.leader)
    group.complete_sync(leader.generation, {c.member_id: c.name.encode() for c in clients}, now_ms)


def test_first_member_leads_and_gets_all_metadata() -> None:
    group, (a, b) = stable("a", "b")
    assert group.state is GroupState.STABLE
    assert a.joins[-1].leader == b.joins[-1].leader == a.member_id
    assert sorted(member[2] for member in a.joins[-1].members) == [b"a", b"b"]
    assert not b.joins[-1].members
    assert [c.syncs[-1].assignment for c in (a, b)] == [b"a", b"b"]
    assert a.generation == b.generation == 2


def test_new_member_rejoins_with_its_id() -> None:
    group = new_group()
    a = Client(group, "a")
    a.join(0, needs_known_id=True)
    assert a.joins[-1].error is ErrorCode.MEMBER_ID_REQUIRED
    a.join(1, needs_known_id=True)
    assert a.joins[-1].error is ErrorCode.NONE


def test_expired_pending_member_does_not_disturb_the_group() -> None:
    """It is not a member yet: a stable group stays so when it leaves or is not heard of again."""
    group, _ = stable("a", "b")
    c, d = Client(group, "c"), Client(group, "d")
    c.join(1, needs_known_id=True)
    d.join(1, needs_known_id=True)
    assert group.leave(c.member_id, None, 2) is ErrorCode.NONE
    for member in group.members.values():
        member.renew_session(SESSION_MS)
    group.tick(SESSION_MS + 2)
    d.join(SESSION_MS + 3)
    assert d.joins[-1].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.state is GroupState.STABLE


def test_member_without_sync_is_removed() -> None:
    """Though the leader did, and the group is stable since."""
    group, (a, b) = stable("a", "b")
    c = Client(group, "c")
    c.join(0)
    a.join(0)
    b.join(0)
    for member in (a, b):
        member.sync(1)
    group.complete_sync(3, {}, 2)
    assert group.state is GroupState.STABLE
    for now_ms in range(5000, REBALANCE_MS, 5000):
        assert {member.heartbeat(now_ms) for member in (a, b, c)} == {ErrorCode.NONE}
        group.tick(now_ms)
    group.tick(REBALANCE_MS)
    assert c.heartbeat(REBALANCE_MS) is ErrorCode.UNKNOWN_MEMBER_ID
    assert a.heartbeat(REBALANCE_MS) is ErrorCode.REBALANCE_IN_PROGRESS


def test_unknown_member_id_is_rejected() -> None:
    a = Client(new_group(), "a")
    a.member_id = "made-up"
    a.join(0)
    assert a.joins[-1].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_first_rebalance_waits_for_more_members() -> None:
    group = new_group(initial_delay_ms=3000)
    a, b = Client(group, "a"), Client(group, "b")
    a.join(0)
    b.join(2000)
    group.tick(3000)
    assert not a.joins  # b prolonged it
    group.tick(6000)
    assert a.generation == b.generation == 1


def test_member_that_does_not_rejoin_is_removed() -> None:
    group, (a, b) = stable("a", "b")
    c = Client(group, "c")
    c.join(100)
    assert a.heartbeat(200) is ErrorCode.REBALANCE_IN_PROGRESS
    a.join(300)
    for now_ms in range(1000, REBALANCE_MS + 100, 5000):  # b lives but never rejoins
        b.heartbeat(now_ms)
        group.tick(now_ms)
    group.tick(REBALANCE_MS + 100)
    assert set(group.members) == {a.member_id, c.member_id}
    assert b.heartbeat(REBALANCE_MS + 200) is ErrorCode.UNKNOWN_MEMBER_ID
    assert a.generation == c.generation == 3


def test_silent_member_expires() -> None:
    group, (a, b) = stable("a", "b")
    a.heartbeat(9000)
    group.tick(SESSION_MS)
    assert set(group.members) == {a.member_id}
    assert group.state is GroupState.PREPARING_REBALANCE
    a.join(SESSION_MS + 1)
    assert a.generation == 3
    assert b.heartbeat(SESSION_MS + 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_old_generation_is_rejected() -> None:
    group, (a, _) = stable("a", "b")
    check = group.check_commit(a.member_id, None, 1, 10)
    assert check is ErrorCode.ILLEGAL_GENERATION
    assert group.check_commit(a.member_id, None, 2, 10) is ErrorCode.NONE
    assert group.check_commit("", None, -1, 10) is ErrorCode.UNKNOWN_MEMBER_ID


def test_commit_between_join_and_sync_is_rejected() -> None:
    group, (a, _) = stable("a", "b")
    Client(group, "c").join(10)
    assert group.check_commit(a.member_id, None, 2, 11) is ErrorCode.NONE
    a.join(12)
    group.tick(REBALANCE_MS + 20)
    assert group.state is GroupState.COMPLETING_REBALANCE
    error = group.check_commit(a.member_id, None, group.generation, REBALANCE_MS + 21)
    assert error is ErrorCode.REBALANCE_IN_PROGRESS


def test_group_is_empty_after_its_last_member_leaves() -> None:
    group, (a, b) = stable("a", "b")
    assert group.leave(a.member_id, None, 10) is ErrorCode.NONE
    assert group.leave(a.member_id, None, 10) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.leave(b.member_id, None, 11) is ErrorCode.NONE
    assert group.state is GroupState.EMPTY
    assert group.pop_emptied()
    assert not group.pop_emptied()
    assert group.next_deadline_ms() is None
    assert group.check_commit("", None, -1, 12) is ErrorCode.NONE


def test_failed_assignment_starts_a_rebalance() -> None:
    group, (a, b) = stable("a", "b")
    a.join(10)
    b.join(11)
    assert a.sync(12)
    assert not b.sync(12)
    group.assignment_failed(group.generation, ErrorCode.NOT_COORDINATOR, 13)
    assert a.syncs[-1].error is b.syncs[-1].error is ErrorCode.NOT_COORDINATOR
    assert group.state is GroupState.PREPARING_REBALANCE


def test_members_without_sync_are_removed() -> None:
    group, (a, b) = stable("a", "b")
    a.join(10)
    b.join(11)
    a.sync(12)
    a_id = a.member_id
    group.tick(11 + REBALANCE_MS)
    assert set(group.members) == {a_id}
    assert a.syncs[-1].error is ErrorCode.REBALANCE_IN_PROGRESS


def test_assignment_renews_the_session_of_a_waiting_sync() -> None:
    """The leader took longer than a session to assign; then a new member makes all join again."""
    group, (a, b) = stable("a", "b")
    a.join(10)
    b.join(11)
    b.sync(12)
    late_ms = 2 * SESSION_MS
    for now_ms in range(5000, late_ms + 1, 5000):
        a.heartbeat(now_ms)
        group.tick(now_ms)
    Client(group, "c").join(late_ms)
    assert b.syncs[-1].error is ErrorCode.REBALANCE_IN_PROGRESS
    group.tick(late_ms)
    assert b.heartbeat(late_ms + 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_assignment_renews_no_session_without_a_waiting_sync() -> None:
    group, (a, b) = stable("a", "b")
    a.join(10)
    b.join(11)
    a.heartbeat(9000)
    a.sync(9000)
    group.complete_sync(group.generation, {}, 9000)
    group.tick(11 + SESSION_MS)
    assert set(group.members) == {a.member_id}


def test_protocols_must_be_shared() -> None:
    group, _ = stable("a", "b")
    c = Client(group, "c", protocols=(("sticky", b""),))
    c.join(10)
    assert c.joins[-1].error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_protocol_with_most_votes_is_selected() -> None:
    group = new_group(initial_delay_ms=10)
    group.generation = 1  # not the first: nobody prolongs the wait
    both = (("sticky", b""), ("range", b""))
    clients = [
        Client(group, "a", protocols=both),
        Client(group, "b", protocols=(("range", b""), ("sticky", b""))),
        Client(group, "c", protocols=both),
    ]
    for client in clients:
        client.join(0)
    group.tick(10)
    assert {client.joins[-1].protocol for client in clients} == {"sticky"}


def test_static_member_returns_without_rebalance() -> None:
    group = new_group()
    a = Client(group, "a", instance_id="i")
    a.join(0)
    settle(group, [a], 0)
    again = Client(group, "a", instance_id="i")
    again.join(5)
    assert group.state is GroupState.STABLE
    assert again.generation == a.generation
    assert again.member_id != a.member_id
    assert a.heartbeat(6) is ErrorCode.FENCED_INSTANCE_ID
    assert again.heartbeat(7) is ErrorCode.NONE


def test_full_group_rejects_members() -> None:
    group = new_group(max_size=1)
    Client(group, "a").join(0)
    b = Client(group, "b")
    b.join(1)
    assert b.joins[-1].error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_resignation_answers_all_waiting_requests() -> None:
    group, (_a, _b) = stable("a", "b")
    c = Client(group, "c")
    c.join(10)
    group.resign(ErrorCode.NOT_COORDINATOR)
    assert c.joins[-1].error is ErrorCode.NOT_COORDINATOR
    assert c.heartbeat(11) is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_returning_static_member_completes_the_rebalance() -> None:
    """As in Apache Kafka, whose handleJoinGroup looks again after every member."""
    group = new_group()
    a = Client(group, "a", instance_id="i")
    b = Client(group, "b")
    a.join(0)
    settle(group, [a], 0)
    b.join(10)
    assert group.state is GroupState.PREPARING_REBALANCE
    again = Client(group, "a", instance_id="i")
    again.join(20)
    assert group.state is GroupState.COMPLETING_REBALANCE
    assert again.generation == b.generation == 2


def test_static_members_with_zero_timeout_do_not_spin_the_broker() -> None:
    group, (a, b) = stable("a", "b")
    static = group.members[a.member_id]
    static.instance_id, static.rebalance_timeout_ms = "i", 0
    group.static_members["i"] = a.member_id
    group.leave(b.member_id, None, 10)
    for _ in range(3):
        due_ms = group.next_deadline_ms()
        assert due_ms is not None
        group.tick(due_ms)
    assert group.state is GroupState.PREPARING_REBALANCE
    assert due_ms > 10
