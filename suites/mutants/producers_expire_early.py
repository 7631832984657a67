"""Expires producers one second after their last batch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a broker forgets producers one second after their last batch"
MODELS = "producer.id.expiration.ms in the wrong unit"
SCENARIO = "repeated-batches"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def append_validated(
            log: Any, batches: Any, leader_epoch: int, now_ms: int, **options: Any
        ) -> Any:
            entries = log.producers.entries
            sent = batches if isinstance(batches, list) and options.get("from_client") else []
            for header, _ in sent:
                known = entries.get(header.producer_id)
                if known is not None and now_ms - known.last_timestamp_ms > 1_000:
                    mark.hit()
                    del entries[header.producer_id]
            return original(log, batches, leader_epoch, now_ms, **options)

        return append_validated

    replace("urteil.broker.log.partition_log:PartitionLog.append_validated", make)
