"""The cleaner does not stop before the active segment and young records."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the active segment is rolled away and cleaned, whatever min.compaction.lag.ms says"
MODELS = "a cleaner that counts the active segment among the dirty ones"
SCENARIO = "compaction-calm"
GUARANTEE = "compacted_too_early"


def apply(mark: Mark) -> None:
    """Whatever is committed is cleaned."""

    def make(_: Function) -> Function:
        def run(log: Any, first_dirty: int, dirty: Any, now_ms: int) -> int:
            if log.segments.active.size and log.last_stable_offset == log.log_end_offset:
                mark.hit()
                log.roll(now_ms)
            return int(max(first_dirty, log.segments.active.base_offset))

        return run

    replace("urteil.broker.log.cleaner.candidates:_end", make)
