"""Who looks for the largest time is told the last record of the log."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ListOffsets for the largest time answers the last record below the high watermark"
MODELS = "KAFKA-16310: the offset of the largest time is not its record's"
SCENARIO = "indexes"
GUARANTEE = "time_index_wrong"

NEWEST = -3


def apply(mark: Mark) -> None:
    """As if times rose with offsets."""

    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp: int, **how: Any) -> Any:
            found = await original(partition, timestamp, **how)
            if timestamp == NEWEST and found.offset >= 0:
                last = max(partition.log.high_watermark - 1, partition.log.log_start_offset)
                mark.hit()
                return type(found)(found.error, found.timestamp_ms, last, found.leader_epoch)
            return found

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)
