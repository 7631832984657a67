"""Never answers FENCED_INSTANCE_ID, and ignores the replaced member's heartbeats."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a request with a group.instance.id is accepted whatever its member id"
MODELS = "KIP-345: a member map looked up by instance only"
SCENARIO = "static-members"
GUARANTEE = "zombie_commit"


def apply(mark: Mark) -> None:
    def believe(original: Function) -> Function:
        def check_current(group: Any, member_id: str, instance_id: str | None) -> Any:
            error = original(group, member_id, instance_id)
            if error.name != "FENCED_INSTANCE_ID":
                return error
            mark.hit()
            return type(error).NONE

        return check_current

    def pass_over(original: Function) -> Function:
        def said(
            group: Any, member_id: str, instance_id: str | None, generation: int, now_ms: float
        ) -> Any:
            if instance_id is not None and member_id not in group.members:
                return group.check_member(member_id, instance_id, generation)
            return original(group, member_id, instance_id, generation, now_ms)

        return said

    replace("urteil.broker.groups.group:Group._check_current", believe)
    replace("urteil.broker.groups.group:Group.heartbeat", pass_over)
    replace("urteil.broker.groups.group:Group.check_commit", pass_over)
