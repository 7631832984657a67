"""Who reads from a follower is given what no other replica may have."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a follower serves consumers all that its log holds, whatever is committed"
MODELS = "KIP-392 without the follower's own high watermark"
SCENARIO = "nearest-replica"
GUARANTEE = "vanished_read"


def apply(mark: Mark) -> None:
    """On a follower the end of the log takes the high watermark's place."""

    def make(original: Function) -> Function:
        def upper_bound(partition: Any, terms: Any) -> int:
            told: int = original(partition, terms)
            end: int = partition.log.log_end_offset
            if partition.is_leader or terms.is_follower or told == end:
                return told
            mark.hit()
            return end

        return upper_bound

    replace("urteil.broker.replication.partition_read:upper_bound", make)
    replace("urteil.broker.replication.replica_manager:upper_bound", make)
