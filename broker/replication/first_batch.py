"""Batches of another log at the end of this one, whose first may begin before the log does."""

from __future__ import annotations

import logging

from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.results import AppendResult
from urteil.broker.wire.batches import parse_header
from urteil.broker.wire.errors import ErrorCode

log = logging.getLogger("follower")


def append_following(plog: PartitionLog, records: memoryview, wall_ms: int) -> AppendResult:
    """Append; an empty log may begin within the first batch, which comes whole after
    DeleteRecords, and then it is begun anew at that batch (`Partition.
    appendRecordsToFollowerOrFutureReplica`). Raises OSError."""
    appended = plog.append_as_follower(records, wall_ms)
    start = plog.log_start_offset
    if appended.error is ErrorCode.OFFSET_OUT_OF_RANGE and start == plog.log_end_offset:
        first = parse_header(records)
        if first.base_offset < start <= first.last_offset:
            log.info("%r: its first batch begins at %d", plog, first.base_offset)
            plog.truncate_fully_and_start_at(first.base_offset)
            appended = plog.append_as_follower(records, wall_ms)
    return appended
