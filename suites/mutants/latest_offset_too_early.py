"""Never answers OFFSET_NOT_AVAILABLE for the latest offset."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a new leader reports its lagging high watermark as the latest offset"
MODELS = "ListOffsets before KIP-207"
SCENARIO = "epoch-truncation"
GUARANTEE = "end_below_ack"

LATEST = -1


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def find_offset(partition: Any, timestamp: int, **how: Any) -> Any:
            kept = partition.epoch_start_offset
            if timestamp == LATEST and kept > partition.log.high_watermark:
                mark.hit()
                partition.epoch_start_offset = -1
            try:
                return await original(partition, timestamp, **how)
            finally:
                partition.epoch_start_offset = kept

        return find_offset

    replace("urteil.broker.api.list_offsets:find_offset", make)
