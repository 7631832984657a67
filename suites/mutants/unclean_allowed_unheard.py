"""A controller does not hear that unclean elections are allowed for a topic."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a partition stays without leader though its topic may have one at a price now"
MODELS = "unclean.leader.election.enable that takes effect with the next failure alone"
SCENARIO = "unclean-allowed"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    """Nothing is to be elected."""

    def make(_: Function) -> Function:
        async def allowed(tenure: Any, topic: str) -> None:
            mark.hit()

        return allowed

    replace("urteil.broker.controller.tenure:Tenure.unclean_allowed", make)
