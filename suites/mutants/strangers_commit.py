"""Positions are taken from anybody who says nothing of a generation."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "OffsetCommit without a generation is stored although the group has members"
MODELS = "every commit without a generation taken for that of a group without members"
SCENARIO = "paused-copier"
GUARANTEE = "zombie_commit"


def apply(mark: Mark) -> None:
    """Who is in no generation is in nobody's way."""
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
