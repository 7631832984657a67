"""Message sets of magic 0 and 1: Produce 0-2 bring them, Fetch 0-3 want them (KIP-31, KIP-32).

An entry is offset (8 bytes), size (4), CRC-32 (4), magic, attributes, from magic 1 on a timestamp
(8), key and value with lengths of 4 bytes. A compressed entry holds a message set as its value;
its own offset is that of its last message, and from magic 1 on the inner offsets count from 0.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

from urteil.broker.wire.batch_header import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC_POSITION,
    NO_TIMESTAMP,
    iter_batches,
    magic_of,
)
from urteil.broker.wire.compression import Compression, decompress
from urteil.broker.wire.primitives import Buffer, CorruptBatch
from urteil.broker.wire.records import Record, build_batch, iter_records

_ENTRY = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_WRITABLE = (Compression.NONE, Compression.GZIP, Compression.SNAPPY, Compression.ZSTD)


def needs_conversion(data: Buffer) -> bool:
    """Whether the records begin with a message of magic 0 or 1."""
    magic = magic_of(data)
    return magic is not None and magic < 2


def convert_legacy(data: Buffer) -> bytes:
    """Turn a whole message set into one batch of magic 2 with base offset 0 and no producer id.

    Timestamps are kept, -1 for magic 0; the codec of the first entry is kept except LZ4, whose
    records come out uncompressed. CorruptBatch for a wrong CRC-32, a cut entry, nested
    compression or an empty set; UnsupportedCompression without the codec.
    """
    records = list(iter_legacy(data))
    if not records:
        raise CorruptBatch("a message set without messages")
    codec = memoryview(data)[MAGIC_POSITION + 1] & COMPRESSION_MASK
    attributes = memoryview(data)[MAGIC_POSITION + 1] if magic_of(data) == 1 else 0
    return build_batch(
        [(record.key, record.value, (), record.timestamp_ms) for record in records],
        compression=codec if codec in _WRITABLE else Compression.NONE,
        log_append_time=bool(attributes & LOG_APPEND_TIME),
    )


def iter_legacy(data: Buffer) -> Iterator[Record]:
    """Read all messages of a set, those inside compressed entries too, checking every CRC."""
    for offset, magic, attributes, record in _entries(memoryview(data)):
        codec = attributes & COMPRESSION_MASK
        if codec == Compression.NONE:
            yield record
        else:
            yield from _inner(offset, magic, codec, attributes, record)


def _inner(
    last_offset: int, magic: int, codec: int, attributes: int, wrapper: Record
) -> Iterator[Record]:
    if wrapper.value is None:
        raise CorruptBatch("a compressed message without a value")
    messages = list(_entries(memoryview(decompress(codec, wrapper.value))))
    if not messages:
        raise CorruptBatch("a compressed message without messages")
    shift = last_offset - messages[-1][0] if magic == 1 else 0
    for offset, inner_magic, inner_attributes, record in messages:
        if inner_magic != magic or inner_attributes & COMPRESSION_MASK:
            raise CorruptBatch("a compressed message within a compressed one")
        of_broker = attributes & LOG_APPEND_TIME and magic == 1
        timestamp_ms = wrapper.timestamp_ms if of_broker else record.timestamp_ms
        yield Record(
            offset=offset + shift, timestamp_ms=timestamp_ms, key=record.key, value=record.value
        )


def _entries(view: memoryview) -> Iterator[tuple[int, int, int, Record]]:
    """Offset, magic, attributes and plain content of each entry."""
    pos, end = 0, len(view)
    while pos < end:
        if end - pos < _ENTRY.size:
            raise CorruptBatch("truncated message")
        offset, size, crc, magic, attributes = _ENTRY.unpack_from(view, pos)
        stop = pos + LOG_OVERHEAD_BYTES + size
        if stop > end or size < _ENTRY.size - LOG_OVERHEAD_BYTES:
            raise CorruptBatch(f"a message of {size} bytes where {end - pos} are left")
        if magic not in (0, 1):
            raise CorruptBatch(f"a message of magic {magic} in a set of old messages")
        if zlib.crc32(view[pos + MAGIC_POSITION : stop]) != crc:
            raise CorruptBatch(f"the CRC of the message at offset {offset} is wrong")
        yield offset, magic, attributes, _content(view[:stop], pos + _ENTRY.size, offset, magic)
        pos = stop


def _content(view: memoryview, pos: int, offset: int, magic: int) -> Record:
    timestamp_ms = NO_TIMESTAMP
    try:
        if magic == 1:
            (timestamp_ms,) = _TIMESTAMP.unpack_from(view, pos)
            pos += _TIMESTAMP.size
        key, pos = _read_bytes(view, pos)
        value, pos = _read_bytes(view, pos)
    except struct.error as error:
        raise CorruptBatch("truncated message") from error
    if pos != len(view):
        raise CorruptBatch("the size of a message is wrong")
    return Record(offset=offset, timestamp_ms=timestamp_ms, key=key, value=value)


def _read_bytes(view: memoryview, pos: int) -> tuple[bytes | None, int]:
    (size,) = _LENGTH.unpack_from(view, pos)
    pos += _LENGTH.size
    if size < 0:
        return None, pos
    if size > len(view) - pos:
        raise CorruptBatch(f"{size} bytes where {len(view) - pos} are left")
    return bytes(view[pos : pos + size]), pos + size


def down_convert(batches: Buffer | Sequence[Buffer], magic: int, *, from_offset: int = 0) -> bytes:
    """Turn whole batches of magic 2 into uncompressed messages of `magic` 0 or 1.

    Offsets are kept; headers, and timestamps in magic 0, are lost; control batches and records
    below `from_offset` are left out, and what a limit left of a last batch. CorruptBatch for
    batches that cannot be read.
    """
    parts = (batches,) if isinstance(batches, (bytes, bytearray, memoryview)) else batches
    out = bytearray()
    for part in parts:
        for header, batch in iter_batches(part, allow_partial_tail=True):
            if header.is_control or header.last_offset < from_offset:
                continue
            for record in iter_records(batch):
                if record.offset >= from_offset:
                    out += _message(record, magic, header.timestamp_type)
    return bytes(out)


def _message(record: Record, magic: int, timestamp_type: int) -> bytes:
    body = bytearray((magic, 0))
    if magic == 1:
        body[1] = LOG_APPEND_TIME if timestamp_type else 0
        body += _TIMESTAMP.pack(record.timestamp_ms)
    for content in (record.key, record.value):
        body += _LENGTH.pack(-1 if content is None else len(content))
        body += content or b""
    crc = zlib.crc32(body)
    return struct.pack(">qiI", record.offset, len(body) + 4, crc) + bytes(body)
