"""Accepts only the next higher number as the next sequence."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch with sequence 0 after the highest sequence is rejected as out of order"
MODELS = "KIP-98: sequence numbers that do not wrap"
SCENARIO = "repeated-batches"
GUARANTEE = "sequence_gap"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def follows(entry: Any, header: Any) -> bool:
            goes_on = entry.epoch == header.producer_epoch and entry.last_sequence > 0
            if goes_on and header.base_sequence == 0:
                mark.hit()
                return False
            result: bool = original(entry, header)
            return result

        return follows

    replace("urteil.broker.log.producer_states:_follows", make)
