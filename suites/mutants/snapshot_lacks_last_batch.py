"""Omits the newest batch of each producer that has several."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a producer snapshot lacks the newest batch of each producer"
MODELS = "a snapshot taken before the last append"
SCENARIO = "unanswered-restart"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def encode(producers: Any) -> bytes:
            older = [entry.copy() for entry in producers]
            for entry in older:
                if len(entry.batches) > 1:
                    mark.hit()
                    del entry.batches[-1]
            data: bytes = original(older)
            return data

        return encode

    replace("urteil.broker.log.producer_snapshots:encode", make)
