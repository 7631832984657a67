"""Encoding and decoding of the records of magic 2 (source: KIP-98, `DefaultRecord`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple

from urteil.broker.base.crc32c import crc32c
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
from urteil.broker.wire.compression import Compression, compress, decompress_chunks
from urteil.broker.wire.primitives import Buffer, CorruptBatch, KafkaServerError, TooLarge
from urteil.broker.wire.varints import put_varint, read_varint, read_varlong

Header = tuple[str, bytes | None]
RecordFields = tuple[bytes | None, bytes | None, Sequence[Header], int]
"""Key, value, headers, timestamp in ms."""

MAX_RECORD_BYTES = 100 << 20
"""The largest record that is decoded; only a compressed one can be larger in a request."""
OUTLINED_AT_ONCE = 512
_LONGEST_VARINT = 10
_COPIED_BYTES = 1 << 20
"""Uncompressed records up to this size are copied first, which makes decoding faster."""
_ReadNumber = Callable[[Buffer, int], tuple[int, int]]


class Record(NamedTuple):
    """One record with its offset; `timestamp_ms` follows the batch's timestamp type."""

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

    Offsets are consecutive from `base_offset` unless `offsets` lists ascending ones. With
    `log_append_time` all records have the largest timestamp. `level` is the compression level.
    Raises ValueError without records.
    """
    if not records:
        raise ValueError("a batch needs at least one record")
    if offsets is None:
        offsets = range(base_offset, base_offset + len(records))
    base_timestamp = records[0][3]
    max_timestamp = max(record[3] for record in records)
    body = bytearray()
    for offset, record in zip(offsets, records, strict=True):
        put_record(body, record, offset - base_offset, record[3] - base_timestamp)
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
    CRC_LAYOUT.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[ATTRIBUTES_POSITION:]))
    return bytes(batch)


def put_record(out: bytearray, record: RecordFields, offset: int, timestamp: int) -> None:
    """Encode a record with its deltas of offset and timestamp."""
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


class _Body:
    """A moving window `data` over the decompressed records of a batch.

    A small batch fits the window completely. Bytes before the window are freed.
    """

    __slots__ = ("_chunks", "data", "has_more")

    def __init__(self, header: BatchHeader, batch: memoryview) -> None:
        self.data: bytes | memoryview
        self.has_more = header.compression != Compression.NONE
        if not self.has_more and len(batch) > _COPIED_BYTES:
            self._chunks: Iterator[bytes] = iter(())
            self.data = batch[HEADER_BYTES:]
            return
        self._chunks = decompress_chunks(header.compression, batch[HEADER_BYTES:])
        self.data = next(self._chunks, b"")

    def move(self, pos: int, need: int) -> Iterator[None]:
        """Move the window to `pos` and extend it to `need` bytes or to the end, chunk by chunk."""
        chunks = [self.data[pos:]]
        size = len(chunks[0])
        while size < need and self.has_more:
            chunk = next(self._chunks, None)
            if chunk is None:
                self.has_more = False
            else:
                chunks.append(chunk)
                size += len(chunk)
                yield
        self.data = b"".join(chunks)

    def skip(self, pos: int, count: int) -> Iterator[None]:
        """Move the window `count` bytes beyond `pos`. Raises IndexError if the records end
        before."""
        missing = count - (len(self.data) - pos)
        while missing > 0:
            chunk = next(self._chunks, None) if self.has_more else None
            if chunk is None:
                raise IndexError
            self.data, pos, count = chunk, 0, missing
            missing -= len(chunk)
            yield
        self.data = self.data[pos + count :]


def iter_records(batch: Buffer) -> Iterator[Record]:
    """Read the records of one complete magic 2 batch in order, decompressing them.

    Memory holds one record and a chunk. Raises CorruptBatch for records that do not match the
    header, malformed ones and one above MAX_RECORD_BYTES, UnsupportedCompression. The CRC is not
    checked; see `is_crc_valid`.
    """
    view = memoryview(batch)
    header = parse_header(view)
    if header.size != len(view):
        raise CorruptBatch(f"a batch of {header.size} bytes in {len(view)}")
    try:
        yield from _records(header, _Body(header, view))
    except IndexError as error:
        raise CorruptBatch("truncated record") from error
    except UnicodeDecodeError as error:
        raise CorruptBatch("a header's name is not UTF-8") from error


class Outline(NamedTuple):
    """The fields of a record that the leader checks; `timestamp_ms` follows the timestamp type."""

    timestamp_ms: int
    has_key: bool
    offset_delta: int


def iter_outlines(batch: Buffer, *, as_sent: bool = True) -> Iterator[list[Outline]]:
    """The outlines of the records of one complete batch, some hundred at a time.

    A list may be empty: a large record takes several steps. `as_sent` requires a producer's
    consecutive offsets. Memory is bounded by the batch and a few chunks. Raises CorruptBatch for
    malformed records or wrong offsets, KafkaServerError where Apache Kafka fails (source:
    `DefaultRecord`, `LogValidator`).
    """
    header = parse_header(batch)
    body = _Body(header, memoryview(batch))
    data, pos = body.data, 0
    end = len(data)
    offset_error = KafkaServerError if header.compression else CorruptBatch
    is_append_time = header.timestamp_type == 1
    outlines: list[Outline] = []
    try:
        for number in range(header.records_count):
            if end - pos < _LONGEST_VARINT and body.has_more:
                for _ in body.move(pos, _LONGEST_VARINT):
                    yield []
                data, pos, end = body.data, 0, len(body.data)
            size, pos = read_varint(data, pos)
            stop = pos + size
            if not 0 < size <= end - pos:
                if size <= 0 or not body.has_more:
                    raise CorruptBatch(
                        f"a record of {size} bytes, but only {end - pos} bytes remain"
                    )
                key_size, delta, offset_delta = yield from _skip_long_record(body, pos, size)
                data, stop, end = body.data, 0, len(body.data)
            else:
                delta, pos = read_varlong(data, pos + 1)
                offset_delta, pos = read_varint(data, pos)
                key_size, pos = read_varint(data, pos)
                value_size, pos = read_varint(data, pos + max(key_size, 0))
                pos += max(value_size, 0)
                if data[pos] or pos + 1 != stop:
                    yield from _skip_headers(data, pos, stop)
            if as_sent and offset_delta != number:
                raise offset_error(f"record {number} has offset {offset_delta} in its batch")
            time_ms = header.max_timestamp if is_append_time else header.base_timestamp + delta
            outlines.append(Outline(time_ms, key_size >= 0, offset_delta))
            pos = stop
            if len(outlines) == OUTLINED_AT_ONCE:
                yield outlines
                outlines = []
        for _ in body.move(pos, 1):
            yield []
    except IndexError as error:
        raise CorruptBatch("truncated record") from error
    if body.data:
        raise CorruptBatch(f"{len(body.data)} bytes after the last record")
    yield outlines


def _skip_headers(data: Buffer, pos: int, stop: int) -> Generator[list[Outline]]:
    count, pos = read_varint(data, pos)
    if not 0 <= count <= stop - pos:
        raise CorruptBatch(f"a record with {count} headers")
    for number in range(1, count + 1):
        name_size, pos = read_varint(data, pos)
        if name_size < 0:
            raise CorruptBatch("a header without a name")
        value_size, pos = read_varint(data, pos + name_size)
        pos += max(value_size, 0)
        if number % OUTLINED_AT_ONCE == 0:
            yield []
    if pos != stop:
        raise CorruptBatch("the size of a record is wrong")


def _skip_long_record(
    body: _Body, pos: int, size: int
) -> Generator[list[Outline], None, tuple[int, int, int]]:
    """Skip a record that exceeds the window, without loading it completely; return the size of its
    key and its deltas of time and offset. The window then begins behind it."""
    remaining = size

    def number(read: _ReadNumber) -> Generator[list[Outline], None, int]:
        nonlocal pos, remaining
        if len(body.data) - pos < _LONGEST_VARINT:
            for _ in body.move(pos, _LONGEST_VARINT):
                yield []
            pos = 0
        value, after = read(body.data, pos)
        remaining -= after - pos
        pos = after
        return value

    def skip(count: int) -> Generator[list[Outline]]:
        nonlocal pos, remaining
        remaining -= count
        pos += count
        if pos > len(body.data):
            for _ in body.skip(pos - count, count):
                yield []
            pos = 0

    yield from skip(1)
    delta = yield from number(read_varlong)
    offset_delta = yield from number(read_varint)
    key_size = yield from number(read_varint)
    yield from skip(max(key_size, 0))
    value_size = yield from number(read_varint)
    yield from skip(max(value_size, 0))
    count = yield from number(read_varint)
    if not 0 <= count <= remaining:
        raise CorruptBatch(f"a record with {count} headers")
    for number_of_header in range(count):
        name_size = yield from number(read_varint)
        if name_size < 0:
            raise CorruptBatch("a header without a name")
        yield from skip(name_size)
        value_size = yield from number(read_varint)
        yield from skip(max(value_size, 0))
        if number_of_header % OUTLINED_AT_ONCE == 0:
            yield []
    if remaining:
        raise CorruptBatch("the size of a record is wrong")
    deque(body.move(pos, 0), 0)
    return key_size, delta, offset_delta


def _records(header: BatchHeader, body: _Body) -> Iterator[Record]:
    if header.records_count < 0:
        raise CorruptBatch(f"a batch of {header.records_count} records")
    data, pos = body.data, 0
    for _ in range(header.records_count):
        if len(data) - pos < _LONGEST_VARINT and body.has_more:
            deque(body.move(pos, _LONGEST_VARINT), 0)
            data, pos = body.data, 0
        size, pos = read_varint(data, pos)
        if size > len(data) - pos and body.has_more:
            if size > MAX_RECORD_BYTES:
                raise TooLarge(f"a record of {size} bytes")
            deque(body.move(pos, size), 0)
            data, pos = body.data, 0
        if not 0 <= size <= len(data) - pos:
            raise CorruptBatch(f"a record of {size} bytes, but only {len(data) - pos} bytes remain")
        yield _record(header, data, pos, pos + size)
        pos += size
    deque(body.move(pos, 1), 0)
    if body.data:
        raise CorruptBatch(f"{len(body.data)} bytes after the last record")


def _record(header: BatchHeader, body: Buffer, pos: int, stop: int) -> Record:
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


def _read_bytes(body: Buffer, pos: int, stop: int) -> tuple[bytes | None, int]:
    size, pos = read_varint(body, pos)
    if size < 0:
        return None, pos
    if size > stop - pos:
        raise CorruptBatch(f"a field has {size} bytes, but only {stop - pos} bytes remain")
    return bytes(body[pos : pos + size]), pos + size
