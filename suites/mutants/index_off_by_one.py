"""Subtracts one from each offset that is added to the index."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "every entry of the offset index is one offset too low"
MODELS = "an index written by next offset and read by last offset"
SCENARIO = "indexes"
GUARANTEE = "index_wrong"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        def append(index: Any, offset: int, position: int) -> None:
            if offset > index.base_offset:
                mark.hit()
                offset -= 1
            original(index, offset, position)

        return append

    replace("urteil.broker.log.indexes:OffsetIndex.append", make)
