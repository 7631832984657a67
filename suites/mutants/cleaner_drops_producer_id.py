"""Rewrites shortened batches as those of a producer without idempotence."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch that the cleaner shortens loses its producer id, epoch and sequence"
MODELS = "a cleaner that rewrites batch headers"
SCENARIO = "compaction"
GUARANTEE = "sequence_gap"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def rebuild_batch(header: Any, *given: Any, **more: Any) -> Any:
            if header.producer_id < 0 or header.is_transactional or header.is_control:
                return original(header, *given, **more)
            mark.hit()
            without_producer = header._replace(producer_id=-1, producer_epoch=-1, base_sequence=-1)
            return original(without_producer, *given, **more)

        return rebuild_batch

    replace("urteil.broker.log.cleaner.record_retention:rebuild_batch", make)
