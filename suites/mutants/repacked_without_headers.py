"""Batches that the broker compresses lose the headers of their records."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "records of a batch that is packed anew have no headers"
MODELS = "a conversion that knows keys and values alone"
SCENARIO = "rewritten"
GUARANTEE = "corrupt"


def apply(mark: Mark) -> None:
    """Headers are left out."""

    def make(original: Function) -> Function:
        def written_anew(records: Any, **options: Any) -> bytearray:
            if any(record[2] for record in records):
                mark.hit()
            bare = [(*record[:2], (), record[3]) for record in records]
            data: bytearray = original(bare, **options)
            return data

        return written_anew

    replace("urteil.broker.log.admission:written_anew", make)
