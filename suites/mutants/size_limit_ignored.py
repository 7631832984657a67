"""Retention finds no log too large."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "logs grow beyond retention.bytes for ever"
MODELS = "retention by size that is asked of the active segment alone"
SCENARIO = "retention"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    """Nothing is ever too much."""

    def make(original: Function) -> Function:
        def too_much(log: Any) -> int:
            if original(log):
                mark.hit()
            return 0

        return too_much

    replace("urteil.broker.log.segment_retention:_too_much", make)
