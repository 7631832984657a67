"""Retention, segments and their deletion."""

from __future__ import annotations

from typing import Any

from urteil.suites.mutants.declaration import mutant
from urteil.suites.mutants.patching import Function, Mark, replace

MAX_RELATIVE_OFFSET = 2**31 - 1


@mutant(
    about="an append that the disk rejected counts as written, and later appends follow it",
    models="KAFKA-10778: appends after an I/O error",
    scenario="disk-full",
    guarantee="lost_write",
    unsimulated="no disk fills up",
)
def append_after_io_error(mark: Mark) -> None:
    """Hides storage errors from the segment's caller."""

    def make(original: Function) -> Function:
        def append(segment: Any, buffers: Any, size: int, placed: Any, interval: int) -> None:
            try:
                original(segment, buffers, size, placed, interval)
            except OSError:
                mark.hit()

        return append

    replace("urteil.broker.log.segment:LogSegment.append", make)


@mutant(
    about="every closed segment counts as expired, by the time of its file",
    models="before KIP-33: deletion by the time of the file",
    scenario="retention",
    guarantee="retained_too_short",
    unsimulated="no clock is wrong where records expire",
)
def retention_by_wrong_clock(mark: Mark) -> None:
    """Compares file times in seconds with a limit in milliseconds."""

    def make(original: Function) -> Function:
        def largest_timestamp_ms(segment: Any) -> int:
            if segment.bound > segment.base_offset + MAX_RELATIVE_OFFSET:  # it is appended to
                return int(original(segment))
            mark.hit()
            return int(segment.file.modified_ms() // 1000)

        return largest_timestamp_ms

    replace("urteil.broker.log.segment:LogSegment.largest_timestamp_ms", make)


@mutant(
    about="expired segments are kept",
    models="a retention task that died",
    scenario="deletion",
    guarantee="kept_too_long",
)
def retention_never_runs(mark: Mark) -> None:
    """Reports no segment as expired."""

    def make(original: Function) -> Function:
        def too_old(log: Any, now_ms: int) -> int:
            if original(log, now_ms):
                mark.hit()
            return 0

        return too_old

    replace("urteil.broker.log.segment_retention:_count_expired", make)


@mutant(
    about="retention.bytes is ignored",
    models="retention by size of the active segment only",
    scenario="retention",
    guarantee="kept_too_long",
    unsimulated="no topic has a limit of size",
)
def size_limit_ignored(mark: Mark) -> None:
    """Reports no log as too large."""

    def make(original: Function) -> Function:
        def too_much(log: Any) -> int:
            if original(log):
                mark.hit()
            return 0

        return too_much

    replace("urteil.broker.log.segment_retention:_count_beyond_size", make)


@mutant(
    about="retention.ms applies to topics whose cleanup.policy is compact only",
    models="retention that checks the time and ignores the policy",
    scenario="tombstones",
    guarantee="retained_too_short",
    mix="compaction",
)
def compacted_topics_expire(mark: Mark) -> None:
    """Applies retention by time whatever the cleanup policy."""
    from urteil.broker.log.segment_retention import _count_expired

    def make(original: Function) -> Function:
        def count_deletable(log: Any, now_ms: int) -> int:
            count: int = original(log, now_ms)
            if _count_expired(log, now_ms) > count:
                mark.hit()
            return max(count, _count_expired(log, now_ms))

        return count_deletable

    replace("urteil.broker.log.segment_retention:count_deletable", make)


@mutant(
    about="segment.ms is ignored",
    models="a log that rolls by size only",
    scenario="mixed",
    guarantee="segment_not_rolled",
)
def segments_not_rolled_by_time(mark: Mark) -> None:
    """Reports no segment as due by time."""

    def make(original: Function) -> Function:
        def is_old(segment: Any, config: Any, max_timestamp_ms: int, now_ms: int) -> bool:
            if original(segment, config, max_timestamp_ms, now_ms):
                mark.hit()
            return False

        return is_old

    replace("urteil.broker.log.segment:LogSegment._is_old", make)
