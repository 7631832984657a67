"""Adds one to the last stable offset, up to the high watermark."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Mark, replace

ABOUT = "the last stable offset is one too high while a transaction is open"
MODELS = "Redpanda #3036: a record at the last stable offset was readable"
SCENARIO = "transactions"
GUARANTEE = "aborted_read"


def apply(mark: Mark) -> None:
    def make(original: Any) -> Any:
        def last_stable_offset(log: Any) -> int:
            stable = int(original.fget(log))
            if stable == log.high_watermark:
                return stable
            mark.hit()
            return stable + 1

        return property(last_stable_offset)

    replace("urteil.broker.log.partition_log:PartitionLog.last_stable_offset", make)
