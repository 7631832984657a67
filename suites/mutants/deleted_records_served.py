"""Checks reads against the base offset of the first segment."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.patching import Function, Mark, replace

ABOUT = "a fetch from before the log start offset is served while the segment is on disk"
MODELS = "KIP-107: a read that checks the first segment instead of the log start offset"
SCENARIO = "deletion"
GUARANTEE = "kept_too_long"


def apply(mark: Mark) -> None:
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
