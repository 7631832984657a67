"""A commit that the offsets topic did not take is acknowledged."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a commit is acknowledged though its record did not get to enough replicas"
MODELS = "an answer to OffsetCommit that does not look at what became of the append"
SCENARIO = "committed-registers"
GUARANTEE = "commit_went_back"


def apply(mark: Mark) -> None:
    """Failures of the append, after the group was checked, are no error."""

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
