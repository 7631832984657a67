"""Clears the producer state when old segments are deleted."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a log whose old segments are deleted forgets all producers"
MODELS = "KAFKA-7190: producer state removed when retention deletes its records"
SCENARIO = "retention-changed"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def retain(log: Any, now_ms: int) -> Any:
            count = original(log, now_ms)
            if count and log.producers.entries:
                mark.hit()
                log.producers.entries.clear()
            return count

        return retain

    replace("urteil.broker.log.partition_log:PartitionLog.apply_retention", make)
