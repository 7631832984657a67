"""Batches as messages of magic 0 and 1, which Fetch 0-3 want (KIP-31, KIP-32).

Sources: `RecordsUtil.downConvert`, `LazyDownConversionRecords`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

from urteil.broker.wire import lz4_frame
from urteil.broker.wire.batch_header import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    BatchHeader,
)
from urteil.broker.wire.compression import (
    MAX_CONVERTED_BYTES,
    Compression,
    UnsupportedCompression,
    compress,
)
from urteil.broker.wire.old_messages import LENGTH, TIMESTAMP
from urteil.broker.wire.primitives import Buffer, TooLarge
from urteil.broker.wire.records import Record
from urteil.broker.wire.stored_batches import iter_stored, iter_stored_records

_HEAD = struct.Struct(">qiI")
_NOTHING_LEFT = struct.pack(">qi", -1, HEADER_BYTES)


def down_convert(batches: Buffer, magic: int, *, from_offset: int = 0) -> bytes:
    """Turn whole batches into messages of `magic` 0 or 1, compressed as they were.

    What is of that magic or an older one stays as it is. Offsets are kept; headers, and timestamps
    in magic 0, are lost, and so are control batches and what a limit left of a last batch. Records
    below `from_offset` are left out where they are not compressed. The answer is no longer than the
    batches were, yet the first one is whole: the last message may be cut, as in any answer. Nothing
    but control batches becomes a message that is announced and not there, so that its reader
    notices that it cannot get on.

    CorruptBatch for batches that cannot be read, UnsupportedCompression when the first one is
    zstd, which old readers do not know, TooLarge when it has more than MAX_CONVERTED_BYTES
    of messages in it; before a later one the answer ends.
    """
    out = bytearray()
    limit = len(batches)
    is_empty = True
    for header, batch in iter_stored(batches, allow_partial_tail=True):
        is_empty = False
        if header.is_control:
            continue
        if header.compression == Compression.ZSTD:
            if out:
                break
            raise UnsupportedCompression("zstd does not go into old messages")
        try:
            converted = _converted(header, batch, magic, from_offset)
        except TooLarge:
            if out:
                break
            raise
        limit = max(limit, len(converted)) if not out else limit
        out += converted
        if len(out) >= limit:
            break
    if not out:
        return b"" if is_empty else _NOTHING_LEFT
    return bytes(out[:limit])


def _converted(header: BatchHeader, batch: memoryview, magic: int, from_offset: int) -> bytes:
    if header.magic <= magic:
        return bytes(batch)
    stamp = LOG_APPEND_TIME if header.timestamp_type else 0
    records = iter_stored_records(batch)
    if header.compression == Compression.NONE:
        records = (one for one in records if one.offset >= from_offset)
    return message_set(records, magic, header.compression, stamp)


def message_set(records: Iterable[Record], magic: int, codec: int, stamp: int = 0) -> bytes:
    """Messages of `magic` with the offsets of these records, in one compressed message if there is
    a codec. `stamp` is LOG_APPEND_TIME where the times are a broker's. One record is in memory at
    a time, and the messages. Raises TooLarge."""
    is_plain = codec == Compression.NONE
    inner = bytearray()
    base, last, newest = None, 0, NO_TIMESTAMP
    for one in records:
        if base is None:
            base, newest = one.offset if magic == 1 and not is_plain else 0, one.timestamp_ms
        inner += _message(one, magic, stamp, base)
        last, newest = one.offset, max(newest, one.timestamp_ms)
        if len(inner) > MAX_CONVERTED_BYTES and not is_plain:
            raise TooLarge(f"messages of more than {MAX_CONVERTED_BYTES} bytes")
    if is_plain or not inner:
        return bytes(inner)
    value = compress(codec, bytes(inner))
    if magic == 0 and codec == Compression.LZ4:
        value = lz4_frame.broken(value)
    wrapper = Record(offset=last, timestamp_ms=newest, key=None, value=value)
    return _message(wrapper, magic, stamp | codec, 0)


def _message(record: Record, magic: int, attributes: int, base: int) -> bytes:
    if magic == 0:
        attributes &= ~LOG_APPEND_TIME
    body = bytearray((magic, attributes))
    if magic == 1:
        body += TIMESTAMP.pack(record.timestamp_ms)
    for content in (record.key, record.value):
        body += LENGTH.pack(-1 if content is None else len(content))
        body += content or b""
    head = _HEAD.pack(record.offset - base, len(body) + 4, zlib.crc32(body))
    return head + bytes(body)
