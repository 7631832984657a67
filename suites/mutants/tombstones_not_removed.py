"""Reports no delete horizon as passed."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the cleaner keeps tombstones for ever"
MODELS = "KAFKA-8522: tombstones that survive because the delete horizon moves"
SCENARIO = "tombstones"
GUARANTEE = "stale_value_visible"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def is_over(*asked: Any) -> bool:
            if original(*asked):
                mark.hit()
            return False

        return is_over

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention._is_over", make)
