"""What throttled replicas cost is not counted."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the rates of throttled replicas are not held"
MODELS = "a reassignment that takes all there is (KIP-73)"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    """Nothing is counted."""

    def make(original: Function) -> Function:
        def record(throttle: Any, size: int) -> None:
            mark.hit()

        return record

    replace("urteil.broker.replication.replication_throttle:Throttle.record", make)
