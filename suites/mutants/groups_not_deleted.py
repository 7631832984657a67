"""A group that is deleted stays."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "DeleteGroups of an empty group is acknowledged, and nothing is done"
MODELS = "DeleteGroups (KIP-229) that forgets the group's positions"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Nothing is left to be forgotten."""

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

    replace("urteil.broker.groups.administration:GroupAdministration._forget", make)
