"""Reports the delete horizon of every batch as passed."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the first cleaning drops tombstones, without waiting for delete.retention.ms"
MODELS = "a cleaner from before KIP-534 whose horizon has always passed"
SCENARIO = "compaction-calm"
GUARANTEE = "tombstone_too_early"


def apply(mark: Mark) -> None:
    def make(_: Function) -> Function:
        def run(*_: Any) -> bool:
            mark.hit()
            return True

        return run

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention._is_over", make)
