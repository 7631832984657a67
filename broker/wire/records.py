"""Records inside batches of magic 2, built and read (source: KIP-98, `DefaultRecord`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import crc32c

from urteil.broker.wire.batch_header import (
    ATTRIBUTES_POSITION,
    CONTROL,
    CRC_LAYOUT,
    CRC_POSITION,
    HEADER_BYTES,
    HEADER_LAYOUT,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAX_SEQUENCE,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL,
    BatchHeader,
    parse_header,
)
from urteil.broker.wire.compression import Compression, compress, decompress
from urteil.broker.wire.primitives import Buffer, CorruptBatch, Unforeseen
from urteil.broker.wire.varints import put_varint, read_varint, read_varlong

Header = tuple[str, bytes | None]
RecordFields = tuple[bytes | None, bytes | None, Sequence[Header], int]
"""Key, value, headers, timestamp in ms."""


class Record(NamedTuple):
    """One record with its place; `timestamp_ms` is already the one its batch says counts."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    sequence: int = NO_SEQUENCE


def build_batch(
    records: Sequence[RecordFields],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    compression: int = Compression.NONE,
    transactional: bool = False,
    control: bool = False,
    log_append_time: bool = False,
    offsets: Sequence[int] | None = None,
    level: int | None = None,
) -> bytes:
    """Build one batch of magic 2 with its CRC, for records of (key, value, headers, timestamp_ms).

    Offsets are consecutive unless `offsets` gives ascending ones from `base_offset` on. With
    `log_append_time` all records bear the largest timestamp. `level` is the codec's, its default
    without. ValueError without records.
    """
    if not records:
        raise ValueError("a batch needs a record")
    if offsets is None:
        offsets = range(base_offset, base_offset + len(records))
    base_timestamp = records[0][3]
    max_timestamp = max(record[3] for record in records)
    body = bytearray()
    for offset, record in zip(offsets, records, strict=True):
        _put_record(body, record, offset - base_offset, record[3] - base_timestamp)
    payload = compress(compression, bytes(body), level)
    attributes = (
        compression
        | (LOG_APPEND_TIME if log_append_time else 0)
        | (TRANSACTIONAL if transactional else 0)
        | (CONTROL if control else 0)
    )
    batch = bytearray(HEADER_BYTES)
    HEADER_LAYOUT.pack_into(
        batch,
        0,
        base_offset,
        HEADER_BYTES - LOG_OVERHEAD_BYTES + len(payload),
        leader_epoch,
        2,
        0,
        attributes,
        offsets[-1] - base_offset,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    batch += payload
    CRC_LAYOUT.pack_into(
        batch, CRC_POSITION, crc32c.crc32c(memoryview(batch)[ATTRIBUTES_POSITION:])
    )
    return bytes(batch)


def _put_record(out: bytearray, record: RecordFields, offset: int, timestamp: int) -> None:
    key, value, headers, _ = record
    body = bytearray(1)
    put_varint(body, timestamp)
    put_varint(body, offset)
    _put_bytes(body, key)
    _put_bytes(body, value)
    put_varint(body, len(headers))
    for name, content in headers:
        _put_bytes(body, name.encode())
        _put_bytes(body, content)
    put_varint(out, len(body))
    out += body


def _put_bytes(out: bytearray, data: bytes | None) -> None:
    if data is None:
        put_varint(out, -1)
    else:
        put_varint(out, len(data))
        out += data


def iter_records(batch: Buffer) -> Iterator[Record]:
    """Read the records of one whole magic 2 batch in order, decompressing them.

    CorruptBatch for records that contradict their header or themselves, UnsupportedCompression
    where the codec's library is missing. The CRC is `crc_ok`'s matter.
    """
    view = memoryview(batch)
    header = parse_header(view)
    if header.size != len(view):
        raise CorruptBatch(f"a batch of {header.size} bytes in {len(view)}")
    body = decompress(header.compression, view[HEADER_BYTES:])
    try:
        yield from _records(header, body)
    except IndexError as error:
        raise CorruptBatch("truncated record") from error
    except UnicodeDecodeError as error:
        raise CorruptBatch("a header's name is not UTF-8") from error


class Outline(NamedTuple):
    """What the leader may have to know of a record; `timestamp_ms` is the one that counts."""

    timestamp_ms: int
    has_key: bool


def iter_outlines(batch: Buffer) -> Iterator[Outline]:
    """The records of one whole batch as a producer sends it, keys, values and headers passed over.

    CorruptBatch where nobody could read them or their offsets are not those of the batch,
    Unforeseen where Apache Kafka stumbles (source: `DefaultRecord`, `LogValidator`).
    """
    header = parse_header(batch)
    body = decompress(header.compression, memoryview(batch)[HEADER_BYTES:])
    pos, end = 0, len(body)
    misplaced = Unforeseen if header.compression else CorruptBatch
    marked = header.timestamp_type == 1
    try:
        for number in range(header.records_count):
            size, pos = read_varint(body, pos)
            stop = pos + size
            if not 0 < size <= end - pos:
                raise CorruptBatch(f"a record of {size} bytes where {end - pos} are left")
            delta, pos = read_varlong(body, pos + 1)
            offset_delta, pos = read_varint(body, pos)
            key_size, pos = read_varint(body, pos)
            value_size, pos = read_varint(body, pos + max(key_size, 0))
            pos += max(value_size, 0)
            if body[pos] or pos + 1 != stop:
                _pass_headers(body, pos, stop)
            if offset_delta != number:
                raise misplaced(f"record {number} has offset {offset_delta} in its batch")
            time_ms = header.max_timestamp if marked else header.base_timestamp + delta
            yield Outline(time_ms, key_size >= 0)
            pos = stop
    except IndexError as error:
        raise CorruptBatch("truncated record") from error
    if pos != end:
        raise CorruptBatch(f"{end - pos} bytes after the last record")


def _pass_headers(body: bytes, pos: int, stop: int) -> None:
    count, pos = read_varint(body, pos)
    if not 0 <= count <= stop - pos:
        raise CorruptBatch(f"a record with {count} headers")
    for _ in range(count):
        name_size, pos = read_varint(body, pos)
        if name_size < 0:
            raise CorruptBatch("a header without a name")
        value_size, pos = read_varint(body, pos + name_size)
        pos += max(value_size, 0)
    if pos != stop:
        raise CorruptBatch("the size of a record is wrong")


def _records(header: BatchHeader, body: bytes) -> Iterator[Record]:
    pos, end = 0, len(body)
    if header.records_count < 0:
        raise CorruptBatch(f"a batch of {header.records_count} records")
    for _ in range(header.records_count):
        size, pos = read_varint(body, pos)
        if not 0 <= size <= end - pos:
            raise CorruptBatch(f"a record of {size} bytes where {end - pos} are left")
        yield _record(header, body, pos, pos + size)
        pos += size
    if pos != end:
        raise CorruptBatch(f"{end - pos} bytes after the last record")


def _record(header: BatchHeader, body: bytes, pos: int, stop: int) -> Record:
    timestamp_delta, pos = read_varlong(body, pos + 1)
    offset_delta, pos = read_varint(body, pos)
    key, pos = _read_bytes(body, pos, stop)
    value, pos = _read_bytes(body, pos, stop)
    count, pos = read_varint(body, pos)
    if not 0 <= count <= stop - pos:
        raise CorruptBatch(f"a record with {count} headers")
    headers = []
    for _ in range(count):
        name, pos = _read_bytes(body, pos, stop)
        if name is None:
            raise CorruptBatch("a header without a name")
        content, pos = _read_bytes(body, pos, stop)
        headers.append((name.decode(), content))
    if pos != stop:
        raise CorruptBatch("the size of a record is wrong")
    sequence = NO_SEQUENCE
    if header.base_sequence != NO_SEQUENCE:
        sequence = (header.base_sequence + offset_delta) & MAX_SEQUENCE
    return Record(
        offset=header.base_offset + offset_delta,
        timestamp_ms=(
            header.max_timestamp
            if header.timestamp_type == 1
            else header.base_timestamp + timestamp_delta
        ),
        key=key,
        value=value,
        headers=tuple(headers),
        sequence=sequence,
    )


def _read_bytes(body: bytes, pos: int, stop: int) -> tuple[bytes | None, int]:
    size, pos = read_varint(body, pos)
    if size < 0:
        return None, pos
    if size > stop - pos:
        raise CorruptBatch(f"{size} bytes where {stop - pos} are left")
    return body[pos : pos + size], pos + size
