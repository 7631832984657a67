"""Accepts any sequence as the next one."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch is appended although the batch before it was rejected"
MODELS = "KIP-98: sequences of idempotent producers not checked"
SCENARIO = "repeated-batches"
GUARANTEE = "sequence_gap"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def follows(entry: Any, header: Any) -> bool:
            if not original(entry, header):
                mark.hit()
            return True

        return follows

    replace("urteil.broker.log.producer_states:_follows", make)
