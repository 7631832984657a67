"""What is known of producers goes with the oldest segments."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a log that lets old segments go forgets all producers with them"
MODELS = "KAFKA-7190: producers' state removed as retention deletes their records"
SCENARIO = "retention-changed"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    """After segments went the log knows nobody."""

    def make(original: Function) -> Function:
        def retain(log: Any, now_ms: int) -> Any:
            count = original(log, now_ms)
            if count and log.producers.entries:
                mark.hit()
                log.producers.entries.clear()
            return count

        return retain

    replace("urteil.broker.log.partition_log:PartitionLog.apply_retention", make)
