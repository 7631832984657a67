"""Acknowledges LeaveGroup for known members and removes none."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "LeaveGroup is answered and ignored: the member stays until its session ends"
MODELS = "a departure that takes effect only when the session ends"
SCENARIO = "members-leave"
GUARANTEE = "no_delivery"


def apply(mark: Mark) -> None:
    from urteil.broker.wire.errors import ErrorCode

    def make(original: Function) -> Function:
        def leave(group: Any, member_id: str, instance_id: Any, now_ms: float) -> Any:
            if member_id not in group.members:
                return original(group, member_id, instance_id, now_ms)
            mark.hit()
            return ErrorCode.NONE

        return leave

    replace("urteil.broker.groups.group:Group.leave", make)
