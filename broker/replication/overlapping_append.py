"""Batches of another log at the end of this one, which may lie within the first of them."""

from __future__ import annotations

import logging

from urteil.broker.log.log_results import AppendResult
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.wire.batches import read_header
from urteil.broker.wire.errors import ErrorCode

log = logging.getLogger("follower")


def append_overlapping(plog: PartitionLog, records: memoryview, wall_ms: int) -> AppendResult:
    """Append. After DeleteRecords the other log may begin within a batch, which comes whole
    (`Partition.appendRecordsToFollowerOrFutureReplica`): where ours ends within it, it is cut to
    the begin of the batch. With records Apache Kafka gives such a replica up. Raises OSError."""
    appended = plog.append_as_follower(records, wall_ms)
    if appended.error is ErrorCode.OFFSET_OUT_OF_RANGE:
        first = read_header(records)
        if first.base_offset < plog.log_end_offset <= first.last_offset:
            log.info("%r: ends within a batch that begins at %d", plog, first.base_offset)
            plog.truncate_to(first.base_offset)
            if plog.log_end_offset == first.base_offset:  # else to be fetched from there
                appended = plog.append_as_follower(records, wall_ms)
    return appended
