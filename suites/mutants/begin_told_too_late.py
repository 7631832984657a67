"""ListOffsets answers a later begin than the log has."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a partition is said to begin where its active segment does"
MODELS = "a log start that is taken from the wrong segment"
SCENARIO = "indexes"
GUARANTEE = "unseen"

_EARLIEST = -2


def apply(mark: Mark) -> None:
    """Readers who ask for the begin are not given what lies before."""

    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp: int, **options: Any) -> Any:
            found = await original(partition, timestamp, **options)
            base = partition.log.segments.active.base_offset
            if timestamp != _EARLIEST or options["isolation"] is None or base <= found.offset:
                return found
            mark.hit()
            return type(found)(offset=base, leader_epoch=found.leader_epoch)

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)
