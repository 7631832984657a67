"""Rebuild of a batch with only some of its records, or with a delete horizon (KIP-534).

Offsets, sequences, epochs and the last offset delta do not change: removed records leave holes, and
the producer's next sequence stays valid (`MemoryRecords.filterTo`).
"""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.log.cleaner.record_scan import ScannedRecords
from urteil.broker.wire.batch_header import (
    COMPRESSION_MASK,
    DELETE_HORIZON,
    HEADER_BYTES,
    NO_TIMESTAMP,
    BatchHeader,
    put_header,
)
from urteil.broker.wire.compression import compress
from urteil.broker.wire.varints import put_varint, read_varint, read_varlong


def empty_batch(header: BatchHeader) -> bytes:
    """The batch without records, which preserves its producer's sequence."""
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON)
    return _build(
        header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, records_count=0),
        b"",
    )


def rebuild_batch(
    header: BatchHeader,
    body: bytes,
    scanned: ScannedRecords,
    kept: Sequence[int],
    horizon_ms: int | None,
) -> bytes:
    """The batch with the records whose numbers are `kept`, and a delete horizon unless None."""
    times = [_timestamp_delta(body, scanned.ends[number]) for number in kept]
    newest = header.max_timestamp
    if not header.timestamp_type:
        newest = header.base_timestamp + max(times)
    if horizon_ms is None:
        content = b"".join(_copy_runs(body, scanned.ends, kept))
    else:
        if header.timestamp_type:
            times = [newest - header.base_timestamp] * len(times)
        content = _shift_times(body, scanned.ends, kept, times, header.base_timestamp - horizon_ms)
        header = header._replace(
            attributes=header.attributes | DELETE_HORIZON, base_timestamp=horizon_ms
        )
    header = header._replace(max_timestamp=newest, records_count=len(kept))
    return _build(header, compress(header.compression, content))


def _build(header: BatchHeader, content: bytes) -> bytes:
    batch = bytearray(HEADER_BYTES)
    batch += content
    put_header(batch, header)
    return bytes(batch)


def _copy_runs(body: bytes, ends: Sequence[int], kept: Sequence[int]) -> list[bytes]:
    """The bytes of the kept records; consecutive ones in one piece."""
    pieces = []
    first = last = kept[0]
    for number in kept[1:]:
        if number != last + 1:
            pieces.append(body[ends[first] : ends[last + 1]])
            first = number
        last = number
    pieces.append(body[ends[first] : ends[last + 1]])
    return pieces


def _timestamp_delta(body: bytes, start: int) -> int:
    _, pos = read_varint(body, start)
    return read_varlong(body, pos + 1)[0]


def _shift_times(
    body: bytes, ends: Sequence[int], kept: Sequence[int], times: Sequence[int], shift_ms: int
) -> bytes:
    """The kept records with timestamp deltas shifted by `shift_ms`."""
    out = bytearray()
    for number, time_ms in zip(kept, times, strict=True):
        _, pos = read_varint(body, ends[number])
        _, fields = read_varlong(body, pos + 1)
        record = bytearray(body[pos : pos + 1])
        put_varint(record, time_ms + shift_ms)
        record += body[fields : ends[number + 1]]
        put_varint(out, len(record))
        out += record
    return bytes(out)
