"""Candidates for a cleaning: the cleanable part of each log (`LogCleanerManager`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.segment import LogSegment

_log = logging.getLogger("urteil.broker.log.cleaner")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A log and its cleanable offsets, `[first_dirty, end)`; sizes in bytes."""

    log: PartitionLog
    first_dirty: int
    end: int
    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int
    """The ms since max.compaction.lag.ms was exceeded, else 0."""

    @property
    def ratio(self) -> float:
        """The cleanable fraction of the log."""
        return self.cleanable_bytes / max(self.clean_bytes + self.cleanable_bytes, 1)

    @property
    def is_due(self) -> bool:
        if self.delay_ms > 0 and self.cleanable_bytes > 0:
            return True
        return self.ratio > self.log.config.min_cleanable_dirty_ratio


def find_candidate(log: PartitionLog, now_ms: int) -> Candidate:
    """The cleanable part of a log. Raises OSError if its files cannot be read."""
    first_dirty = _first_dirty(log)
    dirty = _inactive_from(log, first_dirty)
    end = _end(log, first_dirty, dirty, now_ms)
    clean_bytes = sum(each.size for each in log.segments if each.base_offset < first_dirty)
    start = max(log.segments.floor_index(min(first_dirty, end)), 0)
    cleanable = (each.size for each in list(log.segments)[start:] if each.base_offset < end)
    return Candidate(
        log, first_dirty, end, clean_bytes, sum(cleanable), _delay_ms(log, dirty, now_ms)
    )


def select_dirtiest(candidates: Iterable[Candidate]) -> Candidate | None:
    """The due candidate with the largest ratio, None if none is due."""
    return max(
        (each for each in candidates if each.is_due), key=lambda each: each.ratio, default=None
    )


def _first_dirty(log: PartitionLog) -> int:
    """The offset where the last cleaning ended, or the log start if that lies outside the log.

    The checkpoint can be beyond the end after damage, and below the start after DeleteRecords.
    """
    cleaned_to = log.cleaned_to
    if cleaned_to is None:
        return log.log_start_offset
    if log.log_start_offset <= cleaned_to <= log.log_end_offset:
        return cleaned_to
    if cleaned_to > log.log_end_offset:
        _log.warning("%r: cleaned offset %d is beyond its end: starting over", log, cleaned_to)
    log.cleaned_to = log.log_start_offset
    return log.log_start_offset


def _inactive_from(log: PartitionLog, offset: int) -> list[LogSegment]:
    """The inactive segments from the one that holds `offset` on."""
    if offset > log.segments.active_segment.base_offset:
        return []
    return list(log.segments)[max(log.segments.floor_index(offset), 0) : -1]


def _end(log: PartitionLog, first_dirty: int, dirty: list[LogSegment], now_ms: int) -> int:
    """The base offset of the first segment that must not be cleaned: the active one, one that ends
    beyond the last stable offset, or one with a record younger than min.compaction.lag.ms."""
    active = log.segments.active_segment.base_offset
    limit = min(log.last_stable_offset, active)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        young = (
            each.base_offset for each in dirty if each.largest_timestamp_ms() > now_ms - lag_ms
        )
        limit = min(limit, next(young, limit))
    limit = max(limit, first_dirty)
    if limit >= active:
        return active
    return log.segments[max(log.segments.floor_index(limit), 0)].base_offset


def _delay_ms(log: PartitionLog, dirty: list[LogSegment], now_ms: int) -> int:
    if log.config.max_compaction_lag_ms >= now_ms:
        return 0
    begins = (each.rolling_timestamp_ms() for each in dirty)
    oldest = min((begin for begin in begins if begin is not None and begin > 0), default=now_ms)
    return max(now_ms - max(log.config.max_compaction_lag_ms, 0) - oldest, 0)
