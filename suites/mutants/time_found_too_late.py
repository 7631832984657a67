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
        def offset_for_timestamp(log: Any, timestamp_ms: int) -> Any:
            found = original(log, timestamp_ms)
            if found is None or found.offset + 1 >= log.log_end_offset:
                return found
            mark.hit()
            return found._replace(offset=found.offset + 1)

        return offset_for_timestamp

    replace("urteil.broker.log.partition_log:PartitionLog.offset_for_timestamp", make)
