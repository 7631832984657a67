"""Leaves the deadline of a member unchanged by its requests."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "heartbeats are answered and ignored: each member is removed after one session timeout"
MODELS = "a session timer that neither heartbeats nor commits reset"
SCENARIO = "group-calm"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
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
