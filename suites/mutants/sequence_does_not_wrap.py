"""After the last sequence number there is none."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch with sequence 0 after the last one there is, is out of order"
MODELS = "sequence numbers that do not wrap (KIP-98)"
SCENARIO = "repeated-batches"
GUARANTEE = "sequence_gap"


def apply(mark: Mark) -> None:
    """Only the next higher number follows."""

    def make(original: Function) -> Function:
        def follows(entry: Any, header: Any) -> bool:
            goes_on = entry.epoch == header.producer_epoch and entry.last_sequence > 0
            if goes_on and header.base_sequence == 0:
                mark.hit()
                return False
            found: bool = original(entry, header)
            return found

        return follows

    replace("urteil.broker.log.producer_states:_follows", make)
