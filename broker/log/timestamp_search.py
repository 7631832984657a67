"""Search for offsets by time (`UnifiedLog.fetchOffsetByTimestamp`, `LogSegment`).

The indexes name the candidate batches quickly. A search inside a batch may take long, so each is a
generator of steps of its own; the caller runs them until one returns a record.
"""

from __future__ import annotations

from collections.abc import Iterator

from urteil.broker.base.offload import STEP, Steps
from urteil.broker.log.batch_scan import Batch, read_batches
from urteil.broker.log.log_results import TimestampOffset
from urteil.broker.log.segment import DamagedSegment, LogSegment
from urteil.broker.log.segment_list import SegmentList
from urteil.broker.wire.batches import NEWEST_MAGIC, iter_outlines, iter_stored_records
from urteil.broker.wire.compression import UnsupportedCompression
from urteil.broker.wire.primitives import CorruptBatch

Searches = Iterator[Steps[TimestampOffset | None]]


def search_first_at_or_after(
    segments: SegmentList, timestamp_ms: int, log_start_offset: int
) -> Searches:
    """Search for the first record, in offset order, with a timestamp of at least `timestamp_ms`."""
    for segment in list(segments):
        if segment.size and segment.largest_timestamp_ms() >= timestamp_ms:
            yield from _search_segment(segment, timestamp_ms, log_start_offset)


def _search_segment(segment: LogSegment, timestamp_ms: int, from_offset: int) -> Searches:
    # all records before the entry are older; records with an equal time may lie before it
    start = segment.position_of(max(segment.offset_before_time(timestamp_ms), from_offset))
    if start is None:
        return
    size, end, after = segment.size, start, from_offset
    for batch in read_batches(segment.file, start, size):
        if batch.header.max_timestamp >= timestamp_ms and batch.header.last_offset >= from_offset:
            yield _search_batch(batch, timestamp_ms, from_offset)
        end, after = batch.position + batch.header.size, batch.header.last_offset + 1
    if end != size:
        raise DamagedSegment(segment.file.path, end, after)


def _search_batch(
    batch: Batch, timestamp_ms: int, from_offset: int
) -> Steps[TimestampOffset | None]:
    header = batch.header
    epoch = header.partition_leader_epoch
    try:
        for records in _list_offsets_and_times(batch):
            for offset, time_ms in records:
                if time_ms >= timestamp_ms and offset >= from_offset:
                    return TimestampOffset(time_ms, offset, epoch)
            yield STEP
    except (UnsupportedCompression, CorruptBatch):
        # records that cannot be decompressed: the batch's first offset misses none of them
        return TimestampOffset(header.max_timestamp, header.base_offset, epoch)
    return None


def _list_offsets_and_times(batch: Batch) -> Iterator[list[tuple[int, int]]]:
    """(offset, time in ms) of the records, some hundred at a time."""
    header = batch.header
    if header.magic == NEWEST_MAGIC:
        for outlines in iter_outlines(batch.data, as_sent=False):
            yield [
                (header.base_offset + outline.offset_delta, outline.timestamp_ms)
                for outline in outlines
            ]
    else:
        yield [(record.offset, record.timestamp_ms) for record in iter_stored_records(batch.data)]


def search_newest(segments: SegmentList) -> Searches:
    """Search for the first record with the largest timestamp of the log (KIP-734); -1 counts as a
    timestamp."""
    best = max(segments, key=lambda segment: segment.max_timestamp[0])
    timestamp_ms, last_offset = best.max_timestamp
    position = best.position_of(last_offset)
    if position is None:
        return
    for batch in read_batches(best.file, position, best.size):
        yield _search_batch(batch, timestamp_ms, 0)
        return
