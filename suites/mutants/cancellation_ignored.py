"""Replaces the cancellation by the target of the reassignment under way."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the cancellation of a reassignment is acknowledged, and the reassignment continues"
MODELS = "a null target treated as the current target"
SCENARIO = "reassign-cancelled"
GUARANTEE = "slow_recovery"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def judge(reassignments: Any, tp: Any, target: Any, **how: Any) -> Any:
            now = reassignments._services.context.assignment(tp)
            if target is None and now.is_under_way:
                mark.hit()
                return now
            return original(reassignments, tp, target, **how)

        return judge

    replace("urteil.broker.controller.reassignments:Reassignments._evaluate", make)
