"""Accepts commits without a generation for groups with members."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "OffsetCommit without a generation is accepted although the group has members"
MODELS = "each commit without a generation treated as that of a simple consumer"
SCENARIO = "paused-copier"
GUARANTEE = "zombie_commit"


def apply(mark: Mark) -> None:
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
