"""Counts every committed record as cleanable, after rolling the active segment."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the active segment is rolled and cleaned, whatever min.compaction.lag.ms says"
MODELS = "a cleaner that counts the active segment as dirty"
SCENARIO = "compaction-calm"
GUARANTEE = "compacted_too_early"


def apply(mark: Mark) -> None:
    def make(_: Function) -> Function:
        def run(log: Any, first_dirty: int, dirty: Any, now_ms: int) -> int:
            if log.segments.active.size and log.last_stable_offset == log.log_end_offset:
                mark.hit()
                log.roll(now_ms)
            return int(max(first_dirty, log.segments.active.base_offset))

        return run

    replace("urteil.broker.log.cleaner.candidates:_end", make)
