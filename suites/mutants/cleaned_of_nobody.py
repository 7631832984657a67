"""What is packed anew by the cleaner lacks its producer."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "batches that a cleaning shortens lose their producer's id, epoch and sequence"
MODELS = "a cleaner that rewrites batch headers"
SCENARIO = "compaction"
GUARANTEE = "sequence_gap"


def apply(mark: Mark) -> None:
    """As a producer without idempotence sends them."""

    def make(original: Function) -> Function:
        def rebuilt(header: Any, *given: Any, **more: Any) -> Any:
            if header.producer_id < 0 or header.is_transactional or header.is_control:
                return original(header, *given, **more)
            mark.hit()
            nobody = header._replace(producer_id=-1, producer_epoch=-1, base_sequence=-1)
            return original(nobody, *given, **more)

        return rebuilt

    replace("urteil.broker.log.cleaner.record_retention:rebuilt", make)
