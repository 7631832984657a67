"""Lookup of a partition's offsets: by time, latest, earliest, by leader epoch."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from urteil.broker.base.offload import Offload
from urteil.broker.log.partition_log import PartitionLog, TimestampOffset
from urteil.broker.log.segment import DamagedSegment
from urteil.broker.replication.partition import Partition
from urteil.broker.wire.errors import ErrorCode

_log = logging.getLogger("replicas")

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5


@dataclass(frozen=True, slots=True)
class OffsetAnswer:
    """The result for ListOffsets; all fields are -1 if there is no such record."""

    error: ErrorCode = ErrorCode.NONE
    timestamp_ms: int = -1
    offset: int = -1
    leader_epoch: int = -1


async def find_offset(
    partition: Partition,
    timestamp: int,
    *,
    offload: Offload,
    current_leader_epoch: int,
    isolation: int | None,
    only_leader: bool,
) -> OffsetAnswer:
    """Resolve a timestamp or one of the special ones (`Partition.fetchOffsetForTimestamp`).

    `isolation` is None for followers, which read up to the log's end. OFFSET_NOT_AVAILABLE while
    the high watermark of a new leader is below the start of its epoch: records in between may be
    committed, and `latest` must not go back (KIP-207).
    """
    check = partition.check_leader if only_leader else partition.check_epoch
    error = _check_epoch_number(current_leader_epoch) or check(current_leader_epoch)
    if error is not ErrorCode.NONE:
        return OffsetAnswer(error)
    log = partition.log
    end = _readable_end(partition, isolation)
    is_lagging = isolation is not None and partition.epoch_start_offset > log.high_watermark
    unavailable = OffsetAnswer(ErrorCode.OFFSET_NOT_AVAILABLE)
    if timestamp == LATEST:
        if is_lagging:
            return unavailable
        return OffsetAnswer(offset=end, leader_epoch=partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = log.log_start_offset
        return OffsetAnswer(offset=start, leader_epoch=log.epochs.epoch_at(start))
    if timestamp == LATEST_TIERED:
        return OffsetAnswer()
    if timestamp < MAX_TIMESTAMP:
        return OffsetAnswer(ErrorCode.UNSUPPORTED_VERSION)
    try:
        record = await find_by_time(log, timestamp, offload)
    except DamagedSegment as damage:
        _log.error("%s: no offset by time: %s", partition, damage)
        return OffsetAnswer(ErrorCode.CORRUPT_MESSAGE)
    except OSError as failure:
        log.handle_read_error(failure)
        return OffsetAnswer(ErrorCode.KAFKA_STORAGE_ERROR)
    if record is not None and record[1] < end:
        return OffsetAnswer(ErrorCode.NONE, record[0], record[1], record[2])
    return unavailable if is_lagging else OffsetAnswer()


async def find_by_time(
    log: PartitionLog, timestamp: int, offload: Offload
) -> TimestampOffset | None:
    """The first record at or after a time, or with MAX_TIMESTAMP the first with the largest time;
    None without one. Raises OSError."""
    if timestamp == MAX_TIMESTAMP:
        searches = log.search_max_timestamp()
    else:
        searches = log.search_timestamp(timestamp)
    for search in searches:
        record = await offload.finish(search)
        if record is not None:
            return record
    return None


def _check_epoch_number(epoch: int) -> ErrorCode:
    """Only -1 means an unknown leader epoch here; in a fetch every negative number does."""
    return ErrorCode.FENCED_LEADER_EPOCH if epoch < -1 else ErrorCode.NONE


def _readable_end(partition: Partition, isolation: int | None) -> int:
    if isolation is None:
        return partition.log.log_end_offset
    if isolation == 1:
        return partition.log.last_stable_offset
    return partition.log.high_watermark


def list_offsets_before(partition: Partition, timestamp: int, limit: int, now_ms: int) -> list[int]:
    """ListOffsets 0: the start offsets of the segments written by `timestamp`, newest first, at
    most `limit`. The high watermark counts as the newest
    (`UnifiedLog.legacyFetchOffsetsBefore`)."""
    log = partition.log
    starts = [
        (max(segment.base_offset, log.log_start_offset), segment.file.modified_ms())
        for segment in log.segments
    ]
    if log.segments.active_segment.size > 0:
        starts.append((log.high_watermark, now_ms))
    if timestamp == EARLIEST:
        starts = starts[:1]
    elif timestamp != LATEST:
        starts = [start for start in starts if start[1] <= timestamp]
    offsets = [min(offset, log.high_watermark) for offset, _ in starts]
    return offsets[::-1][: max(limit, 0)]


def find_epoch_end(
    partition: Partition, leader_epoch: int, current_leader_epoch: int
) -> tuple[ErrorCode, int, int]:
    """(error, largest epoch not above `leader_epoch`, its end offset) as the leader (KIP-279)."""
    error = _check_epoch_number(current_leader_epoch) or partition.check_leader(
        current_leader_epoch
    )
    if error is not ErrorCode.NONE:
        return error, -1, -1
    epoch, end_offset = partition.log.epoch_end_offset(leader_epoch)
    return error, epoch, end_offset
