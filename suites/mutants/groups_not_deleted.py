"""Finds nothing to delete in an empty group."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "DeleteGroups of an empty group is acknowledged, and the group remains"
MODELS = "KIP-229: DeleteGroups that forgets the group's offsets"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def forget(
            administration: Any, *given: Any, ordered: bool = False, **more: Any
        ) -> Any:
            from urteil.broker.wire.errors import ErrorCode

            if not ordered:
                return await original(administration, *given, **more)
            mark.hit()
            return ErrorCode.NONE

        return forget

    replace("urteil.broker.groups.maintenance:GroupMaintenance._forget", make)
