"""Uses the time of a producer's last marker as its age."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a producer without transactions expires at the next check of old producers"
MODELS = "KAFKA-9144: early expiration of producer state by marker time"
SCENARIO = "repeated-batches"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    def make(_: Function) -> Function:
        def is_expired(entry: Any, now_ms: int, expiration_ms: int) -> bool:
            if entry.txn_first_offset is None and entry.batches:
                mark.hit()
            return entry.txn_first_offset is None

        return is_expired

    replace("urteil.broker.log.producer_states:is_expired", make)
