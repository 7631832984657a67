"""Answers the lookup of the maximum timestamp with the last record."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ListOffsets for the maximum timestamp answers the last record below the high watermark"
MODELS = "KAFKA-16310: the offset of the maximum timestamp belongs to another record"
SCENARIO = "indexes"
GUARANTEE = "time_index_wrong"

NEWEST = -3


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp: int, **how: Any) -> Any:
            result = await original(partition, timestamp, **how)
            if timestamp == NEWEST and result.offset >= 0:
                last = max(partition.log.high_watermark - 1, partition.log.log_start_offset)
                mark.hit()
                return type(result)(result.error, result.timestamp_ms, last, result.leader_epoch)
            return result

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)
