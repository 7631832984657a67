"""Counts deletions that an earlier controller accepted as already started."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new controller does not resume the topic deletions of its predecessor"
MODELS = "topics marked for deletion that no controller deletes"
SCENARIO = "office-lost"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def wanted(term: Any) -> Any:
            deletable = await original(term)
            if term.ready or not deletable:
                return deletable
            mark.hit()
            return []

        return wanted

    replace("urteil.broker.controller.term:Term._requested_deletions", make)
