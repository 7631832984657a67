"""Any sequence is taken to be the next one."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch is appended although the one that its producer sent before it was refused"
MODELS = "sequences of idempotent producers not checked (KIP-98)"
SCENARIO = "repeated-batches"
GUARANTEE = "sequence_gap"


def apply(mark: Mark) -> None:
    """Whatever comes follows."""

    def make(original: Function) -> Function:
        def follows(entry: Any, header: Any) -> bool:
            if not original(entry, header):
                mark.hit()
            return True

        return follows

    replace("urteil.broker.log.producer_states:_follows", make)
