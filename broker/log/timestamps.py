"""Finding offsets by time (`UnifiedLog.fetchOffsetByTimestamp`, `LogSegment`)."""

from __future__ import annotations

from urteil.broker.log.results import TimestampOffset
from urteil.broker.log.scan import Batch, read_batches
from urteil.broker.log.segment import DamagedSegment, LogSegment
from urteil.broker.log.segments import Segments
from urteil.broker.wire.batches import iter_records
from urteil.broker.wire.compression import UnsupportedCompression
from urteil.broker.wire.primitives import CorruptBatch


def first_at_or_after(
    segments: Segments, timestamp_ms: int, log_start_offset: int
) -> TimestampOffset | None:
    """The first record, in offset order, with a timestamp of at least `timestamp_ms`."""
    for segment in segments:
        if segment.size and segment.largest_timestamp_ms() >= timestamp_ms:
            found = _in_segment(segment, timestamp_ms, log_start_offset)
            if found is not None:
                return found
    return None


def _in_segment(segment: LogSegment, timestamp_ms: int, from_offset: int) -> TimestampOffset | None:
    # all before the entry are older; equal times may begin before it
    start = segment.position_of(max(segment.older_than(timestamp_ms), from_offset))
    if start is None:
        return None
    end, after = start, from_offset
    for batch in read_batches(segment.file, start, segment.size):
        if batch.header.max_timestamp >= timestamp_ms and batch.header.last_offset >= from_offset:
            found = _in_batch(batch, timestamp_ms, from_offset)
            if found is not None:
                return found
        end, after = batch.position + batch.header.size, batch.header.last_offset + 1
    if end != segment.size:
        raise DamagedSegment(segment.file.path, end, after)
    return None


def _in_batch(batch: Batch, timestamp_ms: int, from_offset: int) -> TimestampOffset | None:
    header = batch.header
    epoch = header.partition_leader_epoch
    try:
        for record in iter_records(batch.data):
            if record.timestamp_ms >= timestamp_ms and record.offset >= from_offset:
                return TimestampOffset(record.timestamp_ms, record.offset, epoch)
    except (UnsupportedCompression, CorruptBatch):
        # without the codec the batch is the finest that can be told; no record is missed
        return TimestampOffset(header.max_timestamp, header.base_offset, epoch)
    return None


def newest(segments: Segments) -> TimestampOffset | None:
    """The first record that bears the largest timestamp of the log (KIP-734), be it none (-1)."""
    best = max(segments, key=lambda segment: segment.max_timestamp[0])
    timestamp_ms, last_offset = best.max_timestamp
    position = best.position_of(last_offset)
    if position is None:
        return None
    for batch in read_batches(best.file, position, best.size):
        return _in_batch(batch, timestamp_ms, batch.header.base_offset)
    return None
