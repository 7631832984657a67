"""Members, generations and rebalances of consumer groups."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace
from urteil.suites.mutants.unsimulated import NOT_FOUND

KEPT_MS = 60_000


@mutant(
    about="OffsetCommit of an older generation is accepted",
    models="a removed member that overwrites its successor's commits",
    scenario="zombie-commits",
    guarantee="zombie_commit",
)
def generation_not_checked(mark: Mark) -> None:
    """Compares the generation of a commit with itself."""

    def make(original: Function) -> Function:
        def check_commit(
            group: Any, member_id: str, instance_id: str | None, generation: int, now_ms: float
        ) -> Any:
            if 0 <= generation < group.generation:
                mark.hit()
                generation = group.generation
            return original(group, member_id, instance_id, generation, now_ms)

        return check_commit

    replace("urteil.broker.groups.group:Group.check_commit", make)


@mutant(
    about="a member that joins a stable group gets the leader's partitions, without a rebalance",
    models="a rebalance that does not wait for revocations",
    scenario="rebalance-storm",
    guarantee="two_owners",
)
def rebalance_without_revocation(mark: Mark) -> None:
    """Keeps state and generation of a stable group when a member joins."""

    def make(original: Function) -> Function:
        def add(group: Any, member_id: str, request: Any, now_ms: float, answer: Any) -> None:
            stable, leader = group.state.value == "Stable", group.members.get(group.leader)
            if not stable or leader is None:
                original(group, member_id, request, now_ms, answer)
                return
            mark.hit()
            group._prepare_rebalance = lambda _now_ms: None
            try:
                original(group, member_id, request, now_ms, lambda _result: None)
            finally:
                del group._prepare_rebalance
            member = group.members[member_id]
            member.on_join, member.is_new = None, False
            member.assignment = leader.assignment
            member.renew_session(now_ms)
            answer(group._join_result(member))

        return add

    replace("urteil.broker.groups.group:Group._add", make)


@mutant(
    about="a group member whose session timeout passed stays in the group",
    models="KAFKA-9752: a lost heartbeat timer lets dead members block rebalances",
    scenario="member-killed",
    guarantee="departed_member_kept",
)
def session_never_expires(mark: Mark) -> None:
    """Starts the session of a member anew when it expires."""

    def make(original: Function) -> Function:
        def is_expired(member: Any, now_ms: float) -> bool:
            if original(member, now_ms):
                mark.hit()
                member.renew_session(now_ms)
            return False

        return is_expired

    replace("urteil.broker.groups.member:Member.is_expired", make)


@mutant(
    about="a request with a group.instance.id is accepted whatever its member id",
    models="KIP-345: a member map looked up by instance only",
    scenario="static-members",
    guarantee="zombie_commit",
)
def static_member_not_fenced(mark: Mark) -> None:
    """Never answers FENCED_INSTANCE_ID, and ignores the replaced member's heartbeats."""

    def believe(original: Function) -> Function:
        def check_current(group: Any, member_id: str, instance_id: str | None) -> Any:
            error = original(group, member_id, instance_id)
            if error.name != "FENCED_INSTANCE_ID":
                return error
            mark.hit()
            return type(error).NONE

        return check_current

    def pass_over(original: Function) -> Function:
        def check(
            group: Any, member_id: str, instance_id: str | None, generation: int, now_ms: float
        ) -> Any:
            if instance_id is not None and member_id not in group.members:
                return group.check_member(member_id, instance_id, generation)
            return original(group, member_id, instance_id, generation, now_ms)

        return check

    replace("urteil.broker.groups.group:Group._check_current", believe)
    replace("urteil.broker.groups.group:Group.heartbeat", pass_over)
    replace("urteil.broker.groups.group:Group.check_commit", pass_over)


@mutant(
    about="heartbeats are answered and ignored: each member is removed after one session timeout",
    models="a session timer that neither heartbeats nor commits reset",
    scenario="group-calm",
    guarantee="member_expelled",
)
def heartbeats_ignored(mark: Mark) -> None:
    """Leaves the deadline of a member unchanged by its requests."""

    def make(original: Function) -> Function:
        def renew(
            group: Any, member_id: str, instance_id: str | None, generation: int, now_ms: float
        ) -> Any:
            member = group.members.get(member_id)
            deadline_ms = None if member is None else member.deadline_ms
            error = original(group, member_id, instance_id, generation, now_ms)
            if member is not None:
                mark.hit()
                member.deadline_ms = deadline_ms
            return error

        return renew

    replace("urteil.broker.groups.group:Group.heartbeat", make)
    replace("urteil.broker.groups.group:Group.check_commit", make)


@mutant(
    about="the coordinator gives each member the assignment meant for the member before it",
    models="assignments matched with members by order instead of by member id",
    scenario="group-calm",
    guarantee="two_owners",
)
def assignments_swapped(mark: Mark) -> None:
    """Shifts the leader's assignments by one member."""

    def make(original: Function) -> Function:
        def assign(group: Any, generation: int, assignments: Any, now_ms: float) -> None:
            names, meant = list(assignments), list(assignments.values())
            if len(set(meant)) > 1:
                mark.hit()
                assignments = dict(zip(names, meant[-1:] + meant[:-1], strict=True))
            original(group, generation, assignments, now_ms)

        return assign

    replace("urteil.broker.groups.group:Group.complete_sync", make)


@mutant(
    about="OffsetCommit without a generation is accepted although the group has members",
    models="each commit without a generation treated as that of a simple consumer",
    scenario="paused-copier",
    guarantee="zombie_commit",
)
def simple_commit_to_active_group(mark: Mark) -> None:
    """Accepts commits without a generation for groups with members."""
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def check_commit(
            group: Any, member_id: str, instance_id: Any, generation: int, now_ms: float
        ) -> Any:
            error = original(group, member_id, instance_id, generation, now_ms)
            if generation < 0 and error is not ErrorCode.NONE:
                mark.hit()
                return ErrorCode.NONE
            return error

        return check_commit

    replace("urteil.broker.groups.group:Group.check_commit", make)


@mutant(
    about="LeaveGroup is answered and ignored: the member stays until its session ends",
    models="a departure that takes effect only when the session ends",
    scenario="members-leave",
    guarantee="departed_member_kept",
)
def leave_group_ignored(mark: Mark) -> None:
    """Acknowledges LeaveGroup for known members and removes none."""
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def leave(group: Any, member_id: str, instance_id: Any, now_ms: float) -> Any:
            if member_id not in group.members:
                return original(group, member_id, instance_id, now_ms)
            mark.hit()
            return ErrorCode.NONE

        return leave

    replace("urteil.broker.groups.group:Group.leave", make)


@mutant(
    about="a group member is removed only after three session timeouts",
    models="the rebalance timeout used in place of the session timeout",
    scenario="member-killed",
    guarantee="departed_member_kept",
)
def session_timeout_tripled(mark: Mark) -> None:
    """Sets each deadline three session timeouts ahead."""

    def make(original: Function) -> Function:
        def renew(member: Any, now_ms: float) -> None:
            mark.hit()
            member.deadline_ms = now_ms + 3 * member.session_timeout_ms

        return renew

    replace("urteil.broker.groups.member:Member.renew_session", make)


@mutant(
    about="a member id that was assigned and never used blocks its group for ever",
    models="KIP-394: pending members without a timer",
    scenario="passers-by",
    guarantee="no_delivery",
    mix="groups",
)
def pending_members_never_expire(mark: Mark) -> None:
    """Renews the time of each pending member that is over."""

    def make(original: Function) -> Function:
        def tick(group: Any, now_ms: float) -> Any:
            for member, until in group._pending.items():
                if now_ms >= until:
                    mark.hit()
                    group._pending[member] = now_ms + KEPT_MS
            return original(group, now_ms)

        return tick

    replace("urteil.broker.groups.group:Group.tick", make)


@mutant(
    about="group.max.size is ignored",
    models="KIP-389: group.max.size that is not enforced",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def group_size_unlimited(mark: Mark) -> None:
    """Reports room in every group."""

    def make(original: Function) -> Function:
        def has_room(group: Any, member_id: str) -> bool:
            fits: bool = original(group, member_id)
            if not fits:
                mark.hit()
            return True

        return has_room

    replace("urteil.broker.groups.group:Group._has_room", make)


@mutant(
    about="heartbeats do not report a rebalance",
    models="a heartbeat that is always answered without error",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def rebalance_not_reported(mark: Mark) -> None:
    """Removes REBALANCE_IN_PROGRESS from heartbeat answers."""

    def make(original: Function) -> Function:
        def heartbeat(group: Any, *args: Any) -> Any:
            error = original(group, *args)
            if error.name != "REBALANCE_IN_PROGRESS":
                return error
            mark.hit()
            return type(error).NONE

        return heartbeat

    replace("urteil.broker.groups.group:Group.heartbeat", make)


@mutant(
    about="a static member that rejoins within its session timeout starts a rebalance",
    models="KIP-345: every join with an unknown member id treated as a new member",
    scenario="static-members",
    guarantee="static_member_rebalanced",
)
def static_rejoin_rebalances(mark: Mark) -> None:
    """Starts a rebalance where only the new member id must be stored."""

    def make(original: Function) -> Function:
        def rebalance_again(
            group: Any, request: Any, now_ms: float, *args: Any, **kwargs: Any
        ) -> bool:
            if original(group, request, now_ms, *args, **kwargs):
                mark.hit()
                for member in group.members.values():
                    member.previous_identity = None
                group._prepare_rebalance(now_ms)
            return False

        return rebalance_again

    replace("urteil.broker.groups.group:Group._replace_static", make)


@mutant(
    about="a member that sends no SyncGroup keeps its place and its assignment",
    models="KAFKA-12890",
    scenario="known-answers",
    guarantee="wrong_answer",
)
def sync_timeout_ignored(mark: Mark) -> None:
    """Does nothing when the time for SyncGroup ends."""

    def make(_: Function) -> Function:
        def expire(group: Any, now_ms: float) -> None:
            mark.hit()
            group._sync_deadline_ms = None

        return expire

    replace("urteil.broker.groups.group:Group._expire_syncs", make)


@mutant(
    about="a member that does not rejoin within the rebalance timeout stays in its group",
    models="KIP-62: a rebalance timeout that removes no member",
    scenario="known-answers",
    guarantee="wrong_answer",
    unsimulated=NOT_FOUND,
)
def late_members_kept(mark: Mark) -> None:
    """Treats members that missed the rebalance as static members."""

    def make(original: Function) -> Function:
        def complete(group: Any, now_ms: float) -> None:
            absent = [
                member
                for member in group.members.values()
                if member.on_join is None and member.instance_id is None
            ]
            for member in absent:
                mark.hit()
                member.instance_id = member.member_id
            original(group, now_ms)
            for member in absent:
                member.instance_id = None

        return complete

    replace("urteil.broker.groups.group:Group._complete_join", make)
