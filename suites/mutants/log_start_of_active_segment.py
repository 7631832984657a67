"""Answers ListOffsets with the base offset of the active segment."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a leader reports the base offset of its active segment as the log start offset"
MODELS = "a log start offset that is read from the wrong segment"
SCENARIO = "indexes"
GUARANTEE = "unseen"

_EARLIEST = -2


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp: int, **options: Any) -> Any:
            result = await original(partition, timestamp, **options)
            base = partition.log.segments.active.base_offset
            if timestamp != _EARLIEST or options["isolation"] is None or base <= result.offset:
                return result
            mark.hit()
            return type(result)(offset=base, leader_epoch=result.leader_epoch)

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)
