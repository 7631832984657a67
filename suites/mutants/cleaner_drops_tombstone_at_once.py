"""The cleaner drops tombstones without waiting for delete.retention.ms."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "tombstones go with the first cleaning, before those who read slowly could see them"
MODELS = "a cleaner from before KIP-534, with a horizon that is always over"
SCENARIO = "compaction-calm"
GUARANTEE = "tombstone_too_early"


def apply(mark: Mark) -> None:
    """Every batch's time is over."""

    def make(_: Function) -> Function:
        def run(*_: Any) -> bool:
            mark.hit()
            return True

        return run

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention._is_over", make)
