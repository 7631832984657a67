"""The segments that retention may delete (`UnifiedLog.deleteOldSegments`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from urteil.broker.log.segment import LogSegment

if TYPE_CHECKING:
    from urteil.broker.log.partition_log import PartitionLog


def count_deletable(log: PartitionLog, now_ms: int) -> int:
    """How many of the oldest segments may be deleted: by age, by size, or before the log start.

    All of them end at or below the high watermark. Age and size do not count in compacted-only
    topics.
    """
    count = _count_below_start(log)
    if log.config.deletes:
        count = max(count, _count_expired(log, now_ms), _count_beyond_size(log))
    return count


def _count_while(log: PartitionLog, matches: Callable[[LogSegment, int], bool]) -> int:
    """The length of the prefix of segments for which `matches(segment, end offset)` is true."""
    count = 0
    for index, segment in enumerate(log.segments):
        end = log.segments.end_of(index, log.log_end_offset)
        last_and_empty = index == len(log.segments) - 1 and segment.size == 0
        if end > log.high_watermark or last_and_empty or not matches(segment, end):
            break
        count += 1
    return count


def _count_below_start(log: PartitionLog) -> int:
    # the active segment stays: the log start lies in it
    count = _count_while(log, lambda _, end: end <= log.log_start_offset)
    return min(count, len(log.segments) - 1)


def _count_expired(log: PartitionLog, now_ms: int) -> int:
    limit = log.config.retention_ms
    if limit < 0:
        return 0
    return _count_while(log, lambda segment, _: now_ms - segment.largest_timestamp_ms() > limit)


def _count_beyond_size(log: PartitionLog) -> int:
    limit = log.config.retention_bytes
    if limit < 0:
        return 0
    excess = log.segments.size - limit

    def fits(segment: LogSegment, _: int) -> bool:
        nonlocal excess
        if excess < segment.size:
            return False
        excess -= segment.size
        return True

    return _count_while(log, fits)
