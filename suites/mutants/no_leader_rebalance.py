"""Skips the rebalance of leaders."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "auto.leader.rebalance.enable has no effect"
MODELS = "a scheduled task that an error ended"
SCENARIO = "early-return"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def rebalance_leaders(term: Any, imbalance_percent: int) -> None:
            mark.hit()

        return rebalance_leaders

    replace("urteil.broker.controller.term:Term.rebalance_leaders", make)
