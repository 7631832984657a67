"""A topic whose deletion another controller began stays for ever."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a controller that takes over does not go on with the deletion of topics"
MODELS = "topics marked for deletion that no controller deletes any more"
SCENARIO = "office-lost"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    """What was wished for before this controller came counts as begun."""

    def make(original: Function) -> Function:
        async def wanted(tenure: Any) -> Any:
            admitted = await original(tenure)
            if tenure.ready or not admitted:
                return admitted
            mark.hit()
            return []

        return wanted

    replace("urteil.broker.controller.tenure:Tenure._wanted_deletions", make)
