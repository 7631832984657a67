"""Uses the open transactions of the read before with the high watermark of now."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "read_committed fetches use a high watermark that is newer than their open transactions"
MODELS = "KAFKA-9807: a last stable offset computed from a high watermark that moved meanwhile"
SCENARIO = "transactions"
GUARANTEE = "aborted_read"


def apply(mark: Mark) -> None:
    calm: set[int] = set()

    def make(original: Function) -> Function:
        def upper_bound(partition: Any, terms: Any) -> Any:
            upto = original(partition, terms)
            if terms.is_follower or not terms.read_committed:
                return upto
            log, key = partition.log, id(partition)
            was_calm = key in calm
            is_calm = upto == log.high_watermark
            calm.add(key) if is_calm else calm.discard(key)
            if is_calm or not was_calm:
                return upto
            mark.hit()
            return log.high_watermark

        return upper_bound

    replace("urteil.broker.replication.replica_manager:upper_bound", lambda original: original)
    replace("urteil.broker.replication.partition_read:upper_bound", make)
