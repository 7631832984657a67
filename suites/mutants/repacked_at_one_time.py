"""Batches that the broker compresses lose the times of their records."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a batch that is packed anew has the time of its first record throughout"
MODELS = "deltas of times that get lost on the way through a codec"
SCENARIO = "rewritten"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    """All records of the batch get the first one's time."""

    def make(original: Function) -> Function:
        def written_anew(records: Any, **options: Any) -> bytearray:
            first_ms = records[0][3]
            if any(record[3] != first_ms for record in records):
                mark.hit()
            data: bytearray = original([(*record[:3], first_ms) for record in records], **options)
            return data

        return written_anew

    replace("urteil.broker.log.admission:written_anew", make)
