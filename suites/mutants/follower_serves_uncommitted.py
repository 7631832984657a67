"""Uses a follower's log end offset as its high watermark for consumers."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a follower serves consumers all records of its log, committed or not"
MODELS = "KIP-392 without the follower's own high watermark"
SCENARIO = "nearest-replica"
GUARANTEE = "vanished_read"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def upper_bound(partition: Any, terms: Any) -> int:
            result: int = original(partition, terms)
            end: int = partition.log.log_end_offset
            if partition.is_leader or terms.is_follower or result == end:
                return result
            mark.hit()
            return end

        return upper_bound

    replace("urteil.broker.replication.partition_read:upper_bound", make)
    replace("urteil.broker.replication.replica_manager:upper_bound", make)
