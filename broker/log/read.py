"""Reading a range of batches: positions from the indexes, one read of the file."""

from __future__ import annotations

import struct

from urteil.broker.log.results import ReadResult
from urteil.broker.log.segment import LogSegment
from urteil.broker.log.segments import Segments

_LENGTH = struct.Struct(">8xi")
_OVERHEAD_BYTES = 12


def read(
    segments: Segments,
    offset: int,
    max_bytes: int,
    upto: int,
    log_end_offset: int,
    *,
    min_one: bool,
) -> ReadResult:
    """From one segment only, as Kafka does; see `PartitionLog.read`."""
    if offset >= upto:
        return ReadResult(offset=offset)
    for index in range(segments.floor(offset), len(segments)):
        segment = segments[index]
        if segment.base_offset >= upto:
            break
        start = segment.position_of(offset)
        if start is None:
            continue
        bounded = upto < segments.end_of(index, log_end_offset)
        end = segment.position_at_bound(upto) if bounded else segment.size
        data = _read_range(segment, start, end, max_bytes, min_one=min_one)
        return ReadResult(records=[data] if data else [], size=len(data), offset=offset)
    return ReadResult(offset=offset)


def _read_range(
    segment: LogSegment, start: int, end: int, max_bytes: int, *, min_one: bool
) -> bytes:
    """Bytes of [start, end), a first batch that is larger than `max_bytes` whole or not at all."""
    want = min(end - start, max(max_bytes, 0))
    if want >= end - start:
        return segment.file.read_at(end - start, start) if end > start else b""
    data = segment.file.read_at(max(want, _OVERHEAD_BYTES), start)
    first = int(_LENGTH.unpack_from(data)[0]) + _OVERHEAD_BYTES
    if first <= want:
        return data
    return segment.file.read_at(first, start) if min_one else b""
