"""Accepts any first sequence of a newer producer epoch."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the first batch of a producer's new epoch may have any sequence"
MODELS = "KIP-360: ProducerAppendInfo.checkSequence without the case of a new epoch"
SCENARIO = "known-answers"
GUARANTEE = "wrong_answer"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def follows(entry: Any, header: Any) -> bool:
            if original(entry, header):
                return True
            if header.producer_epoch == entry.epoch:
                return False
            mark.hit()
            return True

        return follows

    replace("urteil.broker.log.producer_states:_follows", make)
