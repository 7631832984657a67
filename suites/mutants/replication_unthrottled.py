"""Records no bytes of throttled replicas."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "replication throttles have no effect"
MODELS = "KIP-73: a reassignment without a limit"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def record(throttle: Any, size: int) -> None:
            mark.hit()

        return record

    replace("urteil.broker.replication.replication_throttle:Throttle.record", make)
