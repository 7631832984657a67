"""Moves of replicas cannot be cancelled, though that is acknowledged."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the cancellation of a reassignment is acknowledged, and the reassignment goes on"
MODELS = "a null target taken for the one that there is already"
SCENARIO = "reassign-cancelled"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    """What is wanted is what is under way."""

    def make(original: Function) -> Function:
        def judge(reassignments: Any, tp: Any, target: Any, **how: Any) -> Any:
            now = reassignments._desk.context.assignment(tp)
            if target is None and now.is_under_way:
                mark.hit()
                return now
            return original(reassignments, tp, target, **how)

        return judge

    replace("urteil.broker.controller.reassignments:Reassignments._judge", make)
