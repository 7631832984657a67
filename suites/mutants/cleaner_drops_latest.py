"""Stores an offset that is one too high for a key that the map already has."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "the cleaner drops the newest value of a key that was written more than once"
MODELS = "an offset map that confuses a record with the next one"
SCENARIO = "compaction-calm"
GUARANTEE = "latest_value_lost"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def run(offsets: Any, keys: Any) -> None:
            again = [(key, offset + 1) for key, offset in keys if key in offsets.offsets]
            original(offsets, keys)
            if again:
                mark.hit()
                original(offsets, again)

        return run

    replace("urteil.broker.log.cleaner.offset_map:OffsetMap.put", make)
