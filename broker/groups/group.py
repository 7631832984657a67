"""The state machine of one consumer group (classic protocol, KIP-62, 345, 394).

The group is synchronous, and the caller passes the time. A request that must wait leaves a callback
with its member; `tick` expires sessions and rebalances. Source: GroupCoordinator and GroupMetadata
of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from urteil.broker.groups.group_state import ALLOWED, GroupState
from urteil.broker.groups.member import (
    NEW_MEMBER_JOIN_TIMEOUT_MS,
    JoinRequest,
    JoinResult,
    Member,
    SyncResult,
)
from urteil.broker.groups.protocol_selection import common_protocols, select_protocol
from urteil.broker.wire.errors import ErrorCode

MIN_WAIT_MS = 1
"""The shortest wait for static members; their timeout of 0 would make the broker spin."""


class Group:
    """Members, generation, protocol and state of one group; the shard holds its offsets."""

    def __init__(self, group_id: str, *, initial_delay_ms: int, max_size: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.empty_since_ms: int | None = None  # by the wall
        self.members: dict[str, Member] = {}
        self.static_members: dict[str, str] = {}
        self._pending: dict[str, float] = {}
        self._initial_delay_ms = initial_delay_ms
        self._max_size = max_size
        self._rebalance_deadline_ms: float | None = None
        self._initial_left_ms: float | None = None  # remaining extension of the initial delay
        self._has_newcomer = False
        self._unsynced: set[str] = set()
        self._sync_deadline_ms: float | None = None
        self._is_emptied = False

    def pop_emptied(self) -> bool:
        """Whether the group lost its last member since the previous call; the caller stores it."""
        emptied, self._is_emptied = self._is_emptied, False
        return emptied

    def _transition(self, state: GroupState) -> None:
        if state not in ALLOWED[self.state]:
            raise RuntimeError(f"group {self.group_id}: {self.state.value} -> {state.value}")
        self.state = state

    # -- joining --------------------------------------------------------------------------------

    def join(
        self, request: JoinRequest, now_ms: float, answer: Callable[[JoinResult], None]
    ) -> bool:
        """Add a member; `answer` is called now or when the rebalance completes.

        True if a static member of a stable group returned: the caller stores the group and calls
        `complete_return`.
        """
        error = self._check_joinable(request)
        if error is ErrorCode.GROUP_MAX_SIZE_REACHED:
            if request.member_id in self.members:
                self._remove(self.members[request.member_id])
            answer(JoinResult(error=error))
            self._maybe_complete_join(now_ms)
        elif error is ErrorCode.UNKNOWN_SERVER_ERROR:
            answer(JoinResult(error=error))
        elif error is not ErrorCode.NONE:
            answer(JoinResult(error=error, member_id=request.member_id))
        elif not request.member_id:
            return self._join_unknown(request, now_ms, answer)
        elif request.member_id in self.members:
            self._rejoin(self.members[request.member_id], request, now_ms, answer)
        else:
            del self._pending[request.member_id]
            self._add(request.member_id, request, now_ms, answer)
        return False

    def _check_joinable(self, request: JoinRequest) -> ErrorCode:
        if not self._has_room(request.member_id):
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        names = {name for name, _ in request.protocols}
        if self.state is GroupState.EMPTY:
            fits = bool(request.protocol_type and names)
        else:
            shared = common_protocols(self.members.values(), names)
            fits = request.protocol_type == self.protocol_type and bool(shared)
        if not fits:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if request.member_id in self._pending and request.instance_id is not None:
            return (
                ErrorCode.UNKNOWN_SERVER_ERROR
            )  # a static member never receives MEMBER_ID_REQUIRED
        if not request.member_id or request.member_id in self._pending:
            return ErrorCode.NONE
        return self._check_current(request.member_id, request.instance_id)

    def _has_room(self, member_id: str) -> bool:
        """Whether the group has room; in a rebalance only waiting members count."""
        if self.state in (GroupState.EMPTY, GroupState.DEAD):
            return True
        known = self.members.get(member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            waiting = sum(m.on_join is not None for m in self.members.values())
            is_waiting = known is not None and known.on_join is not None
            return is_waiting or waiting < self._max_size
        return known is not None or len(self.members) < self._max_size

    def _join_unknown(
        self, request: JoinRequest, now_ms: float, answer: Callable[[JoinResult], None]
    ) -> bool:
        if request.instance_id is not None and request.instance_id in self.static_members:
            return self._replace_static(request, now_ms, answer)
        if request.instance_id is None and request.needs_known_id:
            self._pending[request.new_member_id] = now_ms + request.session_timeout_ms
            answer(JoinResult(error=ErrorCode.MEMBER_ID_REQUIRED, member_id=request.new_member_id))
        else:
            self._add(request.new_member_id, request, now_ms, answer)
        return False

    def _add(
        self,
        member_id: str,
        request: JoinRequest,
        now_ms: float,
        answer: Callable[[JoinResult], None],
    ) -> None:
        member = Member(
            member_id=member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=request.protocols,
            deadline_ms=now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS,
        )
        if not self.members:
            self.protocol_type = request.protocol_type
        self.members[member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member_id
        self.leader = self.leader or member_id
        self._park_join(member, answer)
        self._has_newcomer = self.state is GroupState.PREPARING_REBALANCE and self.generation == 0
        self._prepare_rebalance(now_ms)

    def _park_join(self, member: Member, answer: Callable[[JoinResult], None]) -> None:
        # a request repeated on a new connection replaces the abandoned one
        member.answer_join(
            JoinResult(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id=member.member_id)
        )
        member.on_join = answer

    def _rejoin(
        self,
        member: Member,
        request: JoinRequest,
        now_ms: float,
        answer: Callable[[JoinResult], None],
    ) -> None:
        changed = member.protocols != request.protocols
        is_leader = member.member_id == self.leader
        if (self.state is GroupState.STABLE and not changed and not is_leader) or (
            self.state is GroupState.COMPLETING_REBALANCE and not changed
        ):
            member.renew_session(now_ms)
            answer(self._join_result(member))
            return
        member.apply_request(request)
        self._park_join(member, answer)
        self._prepare_rebalance(now_ms)

    def _replace_static(
        self, request: JoinRequest, now_ms: float, answer: Callable[[JoinResult], None]
    ) -> bool:
        """Fence the old id of a static member that returned under a new one (KIP-345).

        No rebalance follows while the group's protocol stays the same.
        """
        assert request.instance_id is not None
        old_id = self.static_members[request.instance_id]
        member = self.members[old_id]
        member.answer_join(JoinResult(error=ErrorCode.FENCED_INSTANCE_ID, member_id=old_id))
        member.answer_sync(SyncResult(error=ErrorCode.FENCED_INSTANCE_ID))
        self._unsynced.discard(old_id)
        member.remember_identity(self.leader)
        self._rename_member(member, request.instance_id, request.new_member_id)
        member.apply_request(request)
        member.renew_session(now_ms)
        self._park_join(member, answer)
        if (
            self.state is GroupState.STABLE
            and select_protocol(self.members.values()) == self.protocol
        ):
            return True
        self._prepare_rebalance(now_ms)
        return False

    def _rename_member(self, member: Member, instance_id: str, member_id: str) -> None:
        """Change the id of a static member."""
        del self.members[member.member_id]
        if self.leader == member.member_id:
            self.leader = member_id
        member.member_id = member_id
        self.members[member_id] = member
        self.static_members[instance_id] = member_id

    def complete_return(self, request: JoinRequest, error: ErrorCode, now_ms: float) -> None:
        """Complete the return of a static member; restore its old id if storing failed."""
        member = self.members.get(request.new_member_id)
        if (
            member is None
            or member.previous_identity is None
            or self.state is not GroupState.STABLE
        ):
            return  # the rebalance answers the waiting requests
        previous, member.previous_identity = member.previous_identity, None
        result = self._join_result(member)
        if error is not ErrorCode.NONE:
            assert request.instance_id is not None
            self._rename_member(member, request.instance_id, previous.member_id)
            previous.restore(member)
            member.renew_session(now_ms)
            result = replace(result, error=error, member_id="", leader=previous.leader, members=())
        elif not request.can_skip_assignment:
            # an older client that is named leader would compute a new assignment
            result = replace(result, leader=previous.leader, members=())
        elif member.member_id == self.leader:
            result = replace(result, skip_assignment=True)
        member.answer_join(result)

    # -- rebalancing ----------------------------------------------------------------------------

    def _prepare_rebalance(self, now_ms: float) -> None:
        if self.state is GroupState.PREPARING_REBALANCE:
            self._maybe_complete_join(now_ms)
            return
        if self.state is GroupState.COMPLETING_REBALANCE:
            self._fail_syncs(ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
        timeout_ms = max((m.rebalance_timeout_ms for m in self.members.values()), default=0)
        if self.state is GroupState.EMPTY:
            self._initial_left_ms = max(timeout_ms - self._initial_delay_ms, 0)
            self._rebalance_deadline_ms = now_ms + self._initial_delay_ms
        else:
            self._initial_left_ms = None
            self._rebalance_deadline_ms = now_ms + timeout_ms
        self._sync_deadline_ms = None
        self._transition(GroupState.PREPARING_REBALANCE)
        self._maybe_complete_join(now_ms)

    def _maybe_complete_join(self, now_ms: float) -> None:
        if self.state is not GroupState.PREPARING_REBALANCE:
            return
        if self._initial_left_ms is not None:
            self._end_initial_wait(now_ms)
        elif not self._pending and all(m.on_join is not None for m in self.members.values()):
            self._complete_join(now_ms)

    def _end_initial_wait(self, now_ms: float) -> None:
        """End the initial delay, or extend it while new members join."""
        if not _is_over(self._rebalance_deadline_ms, now_ms):
            return
        if self._has_newcomer and self._initial_left_ms:
            wait_ms = min(self._initial_delay_ms, self._initial_left_ms)
            self._has_newcomer = False
            self._initial_left_ms -= wait_ms
            self._rebalance_deadline_ms = now_ms + wait_ms
        else:
            self._complete_join(now_ms)

    def _complete_join(self, now_ms: float) -> None:
        """Begin the next generation with the members that joined; static ones may join late."""
        for member in list(self.members.values()):
            if member.on_join is None and member.instance_id is None:
                self._remove(member)
        self._rebalance_deadline_ms = self._initial_left_ms = None
        self._unsynced.clear()
        if self.members and not any(m.on_join is not None for m in self.members.values()):
            timeout_ms = max(m.rebalance_timeout_ms for m in self.members.values())
            self._rebalance_deadline_ms = now_ms + max(timeout_ms, MIN_WAIT_MS)
            return
        self.generation += 1
        if not self.members:
            self.protocol = None
            self.leader = None
            self._is_emptied = True
            self._transition(GroupState.EMPTY)
            return
        self.protocol = select_protocol(self.members.values())
        if self.leader is None or self.members[self.leader].on_join is None:
            self.leader = next(m.member_id for m in self.members.values() if m.on_join)
        self._transition(GroupState.COMPLETING_REBALANCE)
        timeout_ms = max(m.rebalance_timeout_ms for m in self.members.values())
        self._sync_deadline_ms = now_ms + timeout_ms
        for member in self.members.values():
            member.assignment = b""
            member.is_new = False
            member.renew_session(now_ms)
            self._unsynced.add(member.member_id)
            member.answer_join(self._join_result(member))

    def _join_result(self, member: Member) -> JoinResult:
        is_leader = member.member_id == self.leader
        return JoinResult(
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            members=[
                (m.member_id, m.instance_id, m.metadata(self.protocol))
                for m in self.members.values()
            ]
            if is_leader
            else (),
        )

    # -- syncing --------------------------------------------------------------------------------

    def sync(
        self,
        member_id: str,
        instance_id: str | None,
        generation: int,
        protocol_type: str | None,
        protocol: str | None,
        now_ms: float,
        answer: Callable[[SyncResult], None],
    ) -> bool:
        """Wait for an assignment. True for the leader: the caller stores its assignment and calls
        `complete_sync`."""
        error = self.check_member(member_id, instance_id, generation)
        if error is ErrorCode.NONE and (
            (protocol_type is not None and protocol_type != self.protocol_type)
            or (protocol is not None and protocol != self.protocol)
        ):
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if error is ErrorCode.NONE and self.state is GroupState.PREPARING_REBALANCE:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is not ErrorCode.NONE:
            answer(SyncResult(error=error))
            return False
        member = self.members[member_id]
        member.renew_session(now_ms)
        self._unsynced.discard(member_id)
        if not self._unsynced:
            self._sync_deadline_ms = None
        if self.state is GroupState.STABLE:
            answer(self._sync_result(member))
            return False
        member.answer_sync(SyncResult(error=ErrorCode.UNKNOWN_MEMBER_ID))
        member.on_sync = answer
        return member_id == self.leader

    def complete_sync(
        self, generation: int, assignments: Mapping[str, bytes], now_ms: float
    ) -> None:
        """The leader's assignment of `generation` is stored: the group becomes stable."""
        if self.state is not GroupState.COMPLETING_REBALANCE or generation != self.generation:
            return
        self._transition(GroupState.STABLE)
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            member.answer_sync(self._sync_result(member), now_ms)

    def assignment_failed(self, generation: int, error: ErrorCode, now_ms: float) -> None:
        """Storing the leader's assignment failed: SyncGroup fails, and the members rejoin."""
        if self.state is GroupState.COMPLETING_REBALANCE and generation == self.generation:
            self._fail_syncs(error, now_ms)
            self._prepare_rebalance(now_ms)

    def _fail_syncs(self, error: ErrorCode, now_ms: float) -> None:
        for member in self.members.values():
            member.assignment = b""
            member.answer_sync(SyncResult(error=error), now_ms)

    def _sync_result(self, member: Member) -> SyncResult:
        return SyncResult(
            protocol_type=self.protocol_type, protocol=self.protocol, assignment=member.assignment
        )

    # -- sessions and leaving -------------------------------------------------------------------

    def heartbeat(
        self, member_id: str, instance_id: str | None, generation: int, now_ms: float
    ) -> ErrorCode:
        error = self.check_member(member_id, instance_id, generation)
        if error is ErrorCode.NONE:
            self.members[member_id].renew_session(now_ms)
            if self.state is GroupState.PREPARING_REBALANCE:
                return ErrorCode.REBALANCE_IN_PROGRESS
        return error

    def leave(self, member_id: str, instance_id: str | None, now_ms: float) -> ErrorCode:
        """Remove one member; the instance id alone identifies a static member."""
        if self._pending.pop(member_id, None) is not None:
            self._maybe_complete_join(now_ms)
            return ErrorCode.NONE
        if not member_id and instance_id is not None:
            member_id = self.static_members.get(instance_id, "")
        error = self._check_current(member_id, instance_id)
        if error is ErrorCode.NONE:
            self._remove(self.members[member_id])
            self._after_removal(now_ms)
        return error

    def _remove(self, member: Member) -> None:
        member.answer_join(JoinResult(error=ErrorCode.UNKNOWN_MEMBER_ID))
        member.answer_sync(SyncResult(error=ErrorCode.UNKNOWN_MEMBER_ID))
        del self.members[member.member_id]
        self._unsynced.discard(member.member_id)
        if member.instance_id is not None:
            self.static_members.pop(member.instance_id, None)
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def _after_removal(self, now_ms: float) -> None:
        if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._prepare_rebalance(now_ms)
        self._maybe_complete_join(now_ms)

    def tick(self, now_ms: float) -> None:
        """Expire pending members, sessions, rebalances and syncs."""
        for member_id in [
            pending_member for pending_member, until in self._pending.items() if now_ms >= until
        ]:
            self._pending.pop(member_id)
            self._maybe_complete_join(now_ms)
        for member in [m for m in self.members.values() if m.is_expired(now_ms)]:
            if member.member_id in self.members:
                self._remove(member)
                self._after_removal(now_ms)
        if _is_over(self._rebalance_deadline_ms, now_ms) and (
            self.state is GroupState.PREPARING_REBALANCE
        ):
            if self._initial_left_ms is None:
                self._complete_join(now_ms)
            else:
                self._end_initial_wait(now_ms)
        if _is_over(self._sync_deadline_ms, now_ms):
            self._expire_syncs(now_ms)

    def _expire_syncs(self, now_ms: float) -> None:
        """Remove the members that did not send SyncGroup in time, even if the group is stable."""
        self._sync_deadline_ms = None
        for member in [m for m in self.members.values() if m.member_id in self._unsynced]:
            self._remove(member)
        self._prepare_rebalance(now_ms)

    def enforce_max_size(self, now_ms: float) -> None:
        """Rebalance a loaded group that exceeds the maximum size; members can commit before."""
        if len(self.members) > self._max_size:
            self._prepare_rebalance(now_ms)

    def next_deadline_ms(self) -> float | None:
        """The time of the next `tick`; None without a deadline."""
        sessions = [m.deadline_ms for m in self.members.values() if not m.on_sync and not m.on_join]
        timers = [self._rebalance_deadline_ms, self._sync_deadline_ms]
        known = [*sessions, *self._pending.values(), *(t for t in timers if t is not None)]
        known += [m.deadline_ms for m in self.members.values() if m.on_join and m.is_new]
        return min(known, default=None)

    def resign(self, error: ErrorCode) -> None:
        """End the coordination by this broker: all waiting requests fail with `error`."""
        for member in self.members.values():
            member.answer_join(JoinResult(error=error, member_id=member.member_id))
            member.answer_sync(SyncResult(error=error))
        self._transition(GroupState.DEAD)

    # -- checks ---------------------------------------------------------------------------------

    def _check_current(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Check that the member exists and is the current one of its instance."""
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is not None and known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            return ErrorCode.UNKNOWN_MEMBER_ID if known is None else ErrorCode.NONE
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def check_member(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Check that the request is of a current member in the current generation."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        error = self._check_current(member_id, instance_id)
        if error is ErrorCode.NONE and generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        return error

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, now_ms: float
    ) -> ErrorCode:
        """Check a commit; a valid commit renews the member's session."""
        if generation < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.NONE  # a consumer without subscription uses the group for offsets only
        error = self.check_member(member_id, instance_id, generation)
        if error is ErrorCode.NONE:
            if self.state is GroupState.COMPLETING_REBALANCE:
                return ErrorCode.REBALANCE_IN_PROGRESS
            self.members[member_id].renew_session(now_ms)
        return error


def _is_over(deadline_ms: float | None, now_ms: float) -> bool:
    return deadline_ms is not None and now_ms >= deadline_ms
