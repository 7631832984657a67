"""Rebuilds shortened batches with consecutive offsets."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the records that remain in a cleaned batch get new, consecutive offsets"
MODELS = "recompression that assigns new offsets"
SCENARIO = "compaction-calm"
GUARANTEE = "offset_renumbered"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def run(header: Any, *arguments: Any) -> bytes:
            from urteil.broker.wire.batches import build_batch, iter_records

            mark.hit()
            kept = list(iter_records(original(header, *arguments)))
            return build_batch(
                [(one.key, one.value, one.headers, one.timestamp_ms) for one in kept],
                base_offset=header.base_offset,
                leader_epoch=header.partition_leader_epoch,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                compression=header.compression,
                transactional=header.is_transactional,
            )

        return run

    replace("urteil.broker.log.cleaner.record_retention:rebuild_batch", make)
