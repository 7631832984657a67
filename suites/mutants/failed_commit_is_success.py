"""Ignores errors of the append to __consumer_offsets."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a commit is acknowledged although its record was not replicated"
MODELS = "an OffsetCommit answer that ignores the result of the append"
SCENARIO = "committed-registers"
GUARANTEE = "commit_went_back"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def commit(coordinator: Any, *given: Any, **more: Any) -> Any:
            from urteil.broker.wire.errors import ErrorCode

            error = await original(coordinator, *given, **more)
            if error in (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE):
                mark.hit()
                return ErrorCode.NONE
            return error

        return commit

    replace("urteil.broker.groups.coordinator:GroupCoordinator.commit", make)
