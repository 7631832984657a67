"""Decoding of messages of magic 0 and 1, which Produce 0 to 2 send (KIP-31, KIP-32).

An entry is offset (8 bytes), size (4), CRC-32 (4), magic, attributes, from magic 1 on a timestamp
(8), key and value with lengths of 4 bytes. The value of a compressed entry is a
message set; its offset is that of its last message, and from magic 1 on inner offsets start at 0.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from urteil.broker.wire import lz4_frame
from urteil.broker.wire.batch_header import (
    COMPRESSION_MASK,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC_POSITION,
    NO_TIMESTAMP,
)
from urteil.broker.wire.compression import MAX_CONVERTED_BYTES, Compression, decompress
from urteil.broker.wire.primitives import Buffer, CorruptBatch
from urteil.broker.wire.records import Record

ENTRY = struct.Struct(">qiIbb")
TIMESTAMP = struct.Struct(">q")
LENGTH = struct.Struct(">i")
SMALLEST = (ENTRY.size + 2 * LENGTH.size, ENTRY.size + TIMESTAMP.size + 2 * LENGTH.size)
"""The size of the smallest message of magic 0 and of magic 1."""
KNOWN_ATTRIBUTES = (COMPRESSION_MASK, COMPRESSION_MASK | LOG_APPEND_TIME)
"""The defined attribute bits of magic 0 and of magic 1."""


class MalformedMessage(CorruptBatch):
    """A message with a valid CRC that violates the format."""


def codec_of(entry: Buffer) -> int:
    """The compression of a message."""
    return entry[MAGIC_POSITION + 1] & COMPRESSION_MASK


def has_broker_time(entry: Buffer) -> bool:
    """Whether a message declares LogAppendTime."""
    return entry[MAGIC_POSITION] == 1 and bool(entry[MAGIC_POSITION + 1] & LOG_APPEND_TIME)


def check_crc(entry: Buffer) -> None:
    """Raise CorruptBatch if the CRC-32 of a complete message is wrong."""
    stored = int.from_bytes(entry[12:MAGIC_POSITION], "big")
    if zlib.crc32(memoryview(entry)[MAGIC_POSITION:]) != stored:
        raise CorruptBatch(f"the CRC of a message is wrong (stored crc = {stored})")


def iter_old_messages(data: Buffer, *, same_magic_inside: bool = True) -> Iterator[Record]:
    """Read all messages of a set, also those inside compressed entries, and check every CRC.

    Producers must use one magic inside and outside; logs of old brokers may mix both. Raises
    CorruptBatch for a wrong CRC or a truncated entry, MalformedMessage, UnsupportedCompression.
    """
    for offset, magic, attributes, record in _entries(memoryview(data)):
        codec = attributes & COMPRESSION_MASK
        if codec == Compression.NONE:
            yield record
        else:
            yield from _inner(
                offset, magic, codec, attributes, record, same_magic=same_magic_inside
            )


def _inner(
    last_offset: int,
    magic: int,
    codec: int,
    attributes: int,
    wrapper: Record,
    *,
    same_magic: bool,
) -> Iterator[Record]:
    if wrapper.value is None:
        raise MalformedMessage("a compressed message without a value")
    value = wrapper.value
    if magic == 0 and codec == Compression.LZ4:
        value = lz4_frame.set_standard_checksum(value)
    inside = memoryview(decompress(codec, value, MAX_CONVERTED_BYTES))
    if not inside:
        raise MalformedMessage("a compressed message without messages")
    # some producers send offset 0
    shift = last_offset - _last_offset(inside) if magic == 1 and last_offset else 0
    if shift < 0:
        raise MalformedMessage(f"a compressed message at {last_offset} contains a larger offset")
    for offset, inner_magic, inner_attributes, record in _entries(inside):
        if (same_magic and inner_magic != magic) or inner_attributes & COMPRESSION_MASK:
            raise MalformedMessage("a compressed message inside a compressed one")
        of_broker = attributes & LOG_APPEND_TIME and magic == inner_magic == 1
        timestamp_ms = wrapper.timestamp_ms if of_broker else record.timestamp_ms
        yield Record(
            offset=offset + shift, timestamp_ms=timestamp_ms, key=record.key, value=record.value
        )


def _last_offset(view: memoryview) -> int:
    """The last offset of a message set. Raises CorruptBatch if it is truncated."""
    last, pos, end = 0, 0, len(view)
    while end - pos >= ENTRY.size:
        last, size, *_ = ENTRY.unpack_from(view, pos)
        pos += LOG_OVERHEAD_BYTES + size
        if size < ENTRY.size - LOG_OVERHEAD_BYTES:
            break
    if pos != end:
        raise CorruptBatch("truncated message")
    return int(last)


def _entries(view: memoryview) -> Iterator[tuple[int, int, int, Record]]:
    """(offset, magic, attributes, record) of each entry, without decompression."""
    pos, end = 0, len(view)
    while pos < end:
        if end - pos < ENTRY.size:
            raise CorruptBatch("truncated message")
        offset, size, crc, magic, attributes = ENTRY.unpack_from(view, pos)
        stop = pos + LOG_OVERHEAD_BYTES + size
        if stop > end or size < ENTRY.size - LOG_OVERHEAD_BYTES:
            raise CorruptBatch(f"a message has {size} bytes, but only {end - pos} bytes remain")
        if magic not in (0, 1):
            raise CorruptBatch(f"a message of magic {magic} in a set of old messages")
        if zlib.crc32(view[pos + MAGIC_POSITION : stop]) != crc:
            raise CorruptBatch(f"the CRC of the message at offset {offset} is wrong")
        yield offset, magic, attributes, _content(view[:stop], pos + ENTRY.size, offset, magic)
        pos = stop


def _content(view: memoryview, pos: int, offset: int, magic: int) -> Record:
    timestamp_ms = NO_TIMESTAMP
    try:
        if magic == 1:
            (timestamp_ms,) = TIMESTAMP.unpack_from(view, pos)
            pos += TIMESTAMP.size
        key, pos = _read_bytes(view, pos)
        value, pos = _read_bytes(view, pos)
    except struct.error as error:
        raise MalformedMessage("truncated message") from error
    if pos != len(view):
        raise MalformedMessage("the size of a message is wrong")
    return Record(offset=offset, timestamp_ms=timestamp_ms, key=key, value=value)


def _read_bytes(view: memoryview, pos: int) -> tuple[bytes | None, int]:
    (size,) = LENGTH.unpack_from(view, pos)
    pos += LENGTH.size
    if size < 0:
        return None, pos
    if size > len(view) - pos:
        raise MalformedMessage(f"a field has {size} bytes, but only {len(view) - pos} bytes remain")
    return bytes(view[pos : pos + size]), pos + size
