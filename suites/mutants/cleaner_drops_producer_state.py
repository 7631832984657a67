"""Drops the empty last batches that keep a producer's state."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the cleaner drops the last batch of each producer: new replicas lack the producers' state"
MODELS = "KIP-98: a cleaner that drops the empty last batches of producers"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def is_needed(retention: Any, header: Any) -> bool:
            if not original(retention, header) or header.next_offset == retention.round_end:
                return bool(header.next_offset == retention.round_end)
            mark.hit()
            return False

        return is_needed

    replace("urteil.broker.log.cleaner.record_retention:RecordRetention._is_needed", make)
