"""A coordinator forgets heartbeats: members live one session long."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "heartbeats are answered and do not count: every member is put out after a session timeout"
MODELS = "a session's timer that neither heartbeats nor commits complete"
SCENARIO = "group-calm"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
    """A member's deadline stays what it was before its request."""

    def make(original: Function) -> Function:
        def heard(
            group: Any, member_id: str, instance_id: str | None, generation: int, now_ms: float
        ) -> Any:
            member = group.members.get(member_id)
            deadline_ms = None if member is None else member.deadline_ms
            error = original(group, member_id, instance_id, generation, now_ms)
            if member is not None:
                mark.hit()
                member.deadline_ms = deadline_ms
            return error

        return heard

    replace("urteil.broker.groups.group:Group.heartbeat", make)
    replace("urteil.broker.groups.group:Group.check_commit", make)
