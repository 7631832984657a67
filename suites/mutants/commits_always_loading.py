"""Answers each OffsetCommit after the thirtieth with COORDINATOR_LOAD_IN_PROGRESS."""

from __future__ import annotations

from collections import Counter
from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "after thirty commits a coordinator answers that its group is being loaded"
MODELS = "groups that stay in loading for ever"
SCENARIO = "group-calm"
GUARANTEE = "no_delivery"
BEFORE = 30


def apply(mark: Mark) -> None:
    from urteil.broker.wire.errors import ErrorCode

    asked: Counter[str] = Counter()

    def make(original: Function) -> Function:
        async def commit(coordinator: Any, group_id: str = "", *given: Any, **more: Any) -> Any:
            asked[group_id] += 1
            if asked[group_id] > BEFORE:
                mark.hit()
                return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return await original(coordinator, group_id, *given, **more)

        return commit

    replace("urteil.broker.groups.coordinator:GroupCoordinator.commit", make)
