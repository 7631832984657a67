"""Read of a range of batches: positions from the indexes, then one read of the file."""

from __future__ import annotations

import struct

from urteil.broker.log.log_results import ReadResult
from urteil.broker.log.segment import LogSegment
from urteil.broker.log.segment_list import SegmentList
from urteil.broker.log.storage import FileRange

_LENGTH = struct.Struct(">8xi")
_OVERHEAD_BYTES = 12


def read_range(
    segments: SegmentList,
    offset: int,
    max_bytes: int,
    upto: int,
    log_end_offset: int,
    *,
    min_one: bool,
    lend: bool,
) -> ReadResult:
    """Read from one segment only, as Kafka does; see `PartitionLog.read`."""
    if offset >= upto:
        return ReadResult(offset=offset)
    for index in range(segments.floor_index(offset), len(segments)):
        segment = segments[index]
        if segment.base_offset >= upto:
            break
        start = segment.position_of(offset)
        if start is None:
            continue
        segment_end = segments.end_of(index, log_end_offset)
        end = segment.position_at_bound(upto) if upto < segment_end else segment.size
        data = _read_bytes(segment, start, end, max_bytes, min_one=min_one, lend=lend)
        if not data:
            return ReadResult(offset=offset)
        more = segment_end < upto
        return ReadResult(records=[data], size=len(data), offset=offset, more=more)
    return ReadResult(offset=offset)


def _read_bytes(
    segment: LogSegment, start: int, end: int, max_bytes: int, *, min_one: bool, lend: bool
) -> bytes | FileRange:
    """At most `max_bytes` of [start, end). A larger first batch is returned complete with
    `min_one`, otherwise not at all."""
    size, limit = end - start, max(max_bytes, 0)
    if size > limit:
        head = segment.file.read_at(_OVERHEAD_BYTES, start)
        first = int(_LENGTH.unpack_from(head)[0]) + _OVERHEAD_BYTES
        size = limit if first <= limit else first if min_one else 0
    if size == 0:
        return b""
    return segment.file.lend(size, start) if lend else segment.file.read_at(size, start)
