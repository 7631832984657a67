"""The cleaner drops the newest value of a key that was written more than once."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a key that is in the cleaner's map already gets an offset beyond its newest record"
MODELS = "an offset map that confuses a record with the one after it"
SCENARIO = "compaction-calm"
GUARANTEE = "latest_value_lost"


def apply(mark: Mark) -> None:
    """Keys that come again are taken for newer than they are."""

    def make(original: Function) -> Function:
        def run(offsets: Any, keys: Any) -> None:
            again = [(key, offset + 1) for key, offset in keys if key in offsets.offsets]
            original(offsets, keys)
            if again:
                mark.hit()
                original(offsets, again)

        return run

    replace("urteil.broker.log.cleaner.offset_map:OffsetMap.put", make)
