"""Counts every closed segment as cleanable."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the cleaner processes records above the last stable offset"
MODELS = "KIP-98: cleaning not bounded by the first unstable offset"
SCENARIO = "transactions-held-open"
GUARANTEE = "latest_value_lost"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def end(log: Any, first_dirty: int, dirty: Any, now_ms: int) -> int:
            result: int = original(log, first_dirty, dirty, now_ms)
            active: int = log.segments.active.base_offset
            if log.last_stable_offset >= active or log.config.min_compaction_lag_ms > 0:
                return result
            mark.hit()
            return active

        return end

    replace("urteil.broker.log.cleaner.candidates:_end", make)
