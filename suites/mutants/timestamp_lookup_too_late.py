"""Answers the next record's offset, where there is one."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ListOffsets by timestamp answers the record after the first matching one"
MODELS = "an index entry used as the offset of the next record"
SCENARIO = "indexes"
GUARANTEE = "time_index_wrong"


def apply(mark: Mark) -> None:
    def make(original: Function) -> Function:
        async def find_by_time(log: Any, timestamp: int, offload: Any) -> Any:
            result = await original(log, timestamp, offload)
            if timestamp < 0 or result is None or result.offset + 1 >= log.log_end_offset:
                return result
            mark.hit()
            return result._replace(offset=result.offset + 1)

        return find_by_time

    replace("urteil.broker.replication.offset_lookup:find_by_time", make)
