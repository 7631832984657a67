"""A time is answered with the record after the first one that is not older."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "ListOffsets by a time answers the record after the first that is not older"
MODELS = "an index entry taken for the offset that follows it"
SCENARIO = "indexes"
GUARANTEE = "time_index_wrong"


def apply(mark: Mark) -> None:
    """One record later than it should be, where there is one."""

    def make(original: Function) -> Function:
        async def find_by_time(log: Any, timestamp: int, offload: Any) -> Any:
            found = await original(log, timestamp, offload)
            if timestamp < 0 or found is None or found.offset + 1 >= log.log_end_offset:
                return found
            mark.hit()
            return found._replace(offset=found.offset + 1)

        return find_by_time

    replace("urteil.broker.replication.offset_lookup:find_by_time", make)
