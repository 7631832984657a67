"""Append of batches whose first one may begin before the end of the log."""

from __future__ import annotations

import logging

from urteil.broker.log.log_results import AppendResult
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.wire.batches import read_header
from urteil.broker.wire.errors import ErrorCode

log = logging.getLogger("follower")


def append_overlapping(plog: PartitionLog, records: memoryview, wall_ms: int) -> AppendResult:
    """Append batches of the leader's log, or of the log to copy.

    After DeleteRecords that log may start inside a batch, which is still sent complete
    (`Partition.appendRecordsToFollowerOrFutureReplica`). If this log ends inside the same batch, it
    is first truncated to the batch's begin. If it has records there, Apache Kafka fails the
    replica. Raises OSError.
    """
    appended = plog.append_as_follower(records, wall_ms)
    if appended.error is ErrorCode.OFFSET_OUT_OF_RANGE:
        first = read_header(records)
        if first.base_offset < plog.log_end_offset <= first.last_offset:
            log.info("%r: ends inside the batch that begins at %d", plog, first.base_offset)
            plog.truncate_to(first.base_offset)
            if plog.log_end_offset == first.base_offset:  # else the caller fetches from there
                appended = plog.append_as_follower(records, wall_ms)
    return appended
