"""A record that may yet be aborted supersedes the committed one before it."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the cleaner goes beyond the last stable offset: open transactions count as committed"
MODELS = "cleaning not bounded by the first unstable offset, KIP-98"
SCENARIO = "transactions-held-open"
GUARANTEE = "latest_value_lost"


def apply(mark: Mark) -> None:
    """Every closed segment may be cleaned."""

    def make(original: Function) -> Function:
        def end(log: Any, first_dirty: int, dirty: Any, now_ms: int) -> int:
            told: int = original(log, first_dirty, dirty, now_ms)
            active: int = log.segments.active.base_offset
            if log.last_stable_offset >= active or log.config.min_compaction_lag_ms > 0:
                return told
            mark.hit()
            return active

        return end

    replace("urteil.broker.log.cleaner.candidates:_end", make)
