"""Checks that the files of a log are consistent, by samples.

Kafka's formats have no checksum over indexes, epochs and aborted transactions. The checks compare
their entries with the heads of the batches that they refer to.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from urteil.broker.log.batch_scan import Batch, read_batches
from urteil.broker.log.segment import DamagedSegment, LogSegment
from urteil.broker.log.segment_list import SegmentList
from urteil.broker.log.txn_index import AbortedTxn

_CHECKED_ABORTS = 1000


def batch_at(segments: SegmentList, offset: int) -> Batch | None:
    """The first batch of the log that ends at `offset` or later."""
    for index in range(max(segments.floor_index(offset), 0), len(segments)):
        segment = segments[index]
        position = segment.position_of(offset)
        if position is not None:
            return next(read_batches(segment.file, position, segment.size), None)
    return None


def is_consistent(segments: SegmentList, index: int) -> bool:
    """Whether a flushed segment matches its indexes, by the last entries of the indexes."""
    segment = segments[index]
    if not (segment.offset_index.exists() and segment.time_index.exists()):
        return False
    if not (
        segment.offset_index.is_sane(segment.size)
        and segment.time_index.is_sane()
        and segment.txn_index.is_sane()
    ):
        return False
    try:
        return (
            segment.end_from_index() <= segment.bound
            and _is_last_time_consistent(segment)
            and _are_aborts_consistent(segments, segment)
        )
    except DamagedSegment:
        return False


def _is_last_time_consistent(segment: LogSegment) -> bool:
    timestamp_ms, offset = segment.time_index.last
    if timestamp_ms < 0:
        return True
    position = segment.position_of(offset)
    if position is None:
        return False
    batch = next(read_batches(segment.file, position, segment.size), None)
    return batch is not None and batch.header.max_timestamp == timestamp_ms


def _are_aborts_consistent(segments: SegmentList, segment: LogSegment) -> bool:
    low = segment.base_offset
    entries = segment.txn_index.entries
    for txn in entries:
        if not (
            0 <= txn.first_offset <= txn.last_offset and low <= txn.last_offset < segment.bound
        ):
            return False
        if not 0 <= txn.last_stable_offset <= txn.last_offset + 1:
            return False
        low = txn.last_offset + 1
    return all(_has_marker(segments, segment, txn) for txn in entries[-_CHECKED_ABORTS:])


def _has_marker(segments: SegmentList, segment: LogSegment, txn: AbortedTxn) -> bool:
    """Whether the marker of an aborted transaction is at its offset, and its first batch, unless
    compaction removed it."""
    position = segment.position_of(txn.last_offset)
    batch = None
    if position is not None:
        batch = next(read_batches(segment.file, position, segment.size), None)
    if batch is None or not batch.header.is_control:
        return False
    if batch.header.producer_id != txn.producer_id or batch.header.base_offset > txn.last_offset:
        return False
    if txn.first_offset < segments.first_offset:
        return True
    begin = batch_at(segments, txn.first_offset)
    if begin is None or begin.header.base_offset != txn.first_offset:
        return begin is None or begin.header.base_offset > txn.first_offset  # removed by compaction
    return begin.header.is_transactional and begin.header.producer_id == txn.producer_id


def is_epoch_cache_consistent(
    segments: SegmentList, epochs: list[tuple[int, int]], log_end_offset: int
) -> bool:
    """Whether every epoch begins and ends where its batches do, as far as compaction left them."""
    ends = [*(start for _, start in epochs[1:]), log_end_offset]
    try:
        for (epoch, start), next_start in zip(epochs, ends, strict=False):
            end = min(next_start, log_end_offset)
            for offset in (start, end - 1):
                batch = batch_at(segments, offset) if start < end else None
                if batch is None or batch.header.base_offset >= end:
                    continue
                if batch.header.partition_leader_epoch not in (epoch, -1):
                    return False
        first = batch_at(segments, 0)
    except DamagedSegment:
        return True  # the batches cannot be read
    return first is None or bool(epochs) or first.header.partition_leader_epoch < 0


def read_epochs_from_batches(segments: SegmentList, end: float = inf) -> list[tuple[int, int]]:
    """(epoch, start offset) entries from the batches before `end`. The epoch of a single batch
    between batches of another epoch is ignored as damage: no checksum covers it."""
    heads = _Heads(segments, end)
    entries: list[tuple[int, int]] = []
    for before, (epoch, offset), after in heads.triples():
        is_odd = before <= after and not before <= epoch <= after
        if not is_odd and epoch > (entries[-1][0] if entries else -1):
            entries.append((epoch, offset))
    return entries


class _Heads:
    """(leader epoch, base offset) of every batch before an end offset."""

    def __init__(self, segments: SegmentList, end: float) -> None:
        self._segments = segments
        self._end = end

    def _read_all(self) -> Iterator[tuple[int, int]]:
        for segment in self._segments:
            for batch in read_batches(segment.file, 0, segment.size):
                if batch.header.base_offset >= self._end:
                    return
                yield batch.header.partition_leader_epoch, batch.header.base_offset

    def triples(self) -> Iterator[tuple[int, tuple[int, int], int]]:
        """Each head between the epochs of its neighbours."""
        before, here = -1, None
        for head in self._read_all():
            if here is not None:
                yield before, here, head[0]
                before = here[0]
            here = head
        if here is not None:
            yield before, here, 2**31 - 1
