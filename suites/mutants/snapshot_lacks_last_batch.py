"""The snapshot of a clean stop is one batch old."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a snapshot of producers has the last batch but one of each"
MODELS = "a producer snapshot taken before the last append"
SCENARIO = "unanswered-restart"
GUARANTEE = "duplicate"


def apply(mark: Mark) -> None:
    """Of a producer that has sent more than one batch the newest is left out."""

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
