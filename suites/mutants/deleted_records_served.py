"""A leader serves what lies before the begin of its log, as long as the file is there."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a fetch from before the begin of a log is not refused while the segment is on disk"
MODELS = "a read that asks the first segment, not the log's start, how far back it may go (KIP-107)"
SCENARIO = "deletion"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
    """For such a read the log begins where its first segment does."""

    def make(original: Function) -> Function:
        def read(log: Any, offset: int, max_bytes: int, **how: Any) -> Any:
            start = log.log_start_offset
            if not log.segments.first_offset <= offset < start:
                return original(log, offset, max_bytes, **how)
            mark.hit()
            log.log_start_offset = offset
            try:
                return original(log, offset, max_bytes, **how)
            finally:
                log.log_start_offset = start

        return read

    replace("urteil.broker.log.partition_log:PartitionLog.read", make)
