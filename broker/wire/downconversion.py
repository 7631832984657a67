"""Conversion of batches into messages of magic 0 and 1 for Fetch 0 to 3 (KIP-31, KIP-32).

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
_MISSING_MESSAGE = struct.pack(">qi", -1, HEADER_BYTES)


def down_convert(batches: Buffer, magic: int, *, from_offset: int = 0) -> bytes:
    """Convert batches into messages of `magic` 0 or 1 with the same codec.

    Batches of that magic or an older one are copied. Offsets stay. Record headers are dropped, and
    so are timestamps in magic 0, control batches and an incomplete last batch. Uncompressed records
    below `from_offset` are left out. The result is not longer than the batches, except that the
    first converted batch is complete; the last message may be truncated. If there are only control
    batches, the result is the head of a missing message, so that the reader notices that it cannot
    advance.

    Raises CorruptBatch for unreadable batches, UnsupportedCompression if the first batch is zstd,
    which old readers do not support, and TooLarge if it converts to more than MAX_CONVERTED_BYTES;
    before such a later batch the result ends.
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
            raise UnsupportedCompression("zstd is not supported in messages of magic 0 and 1")
        try:
            converted = _convert(header, batch, magic, from_offset)
        except TooLarge:
            if out:
                break
            raise
        limit = max(limit, len(converted)) if not out else limit
        out += converted
        if len(out) >= limit:
            break
    if not out:
        return b"" if is_empty else _MISSING_MESSAGE
    return bytes(out[:limit])


def _convert(header: BatchHeader, batch: memoryview, magic: int, from_offset: int) -> bytes:
    if header.magic <= magic:
        return bytes(batch)
    stamp = LOG_APPEND_TIME if header.timestamp_type else 0
    records = iter_stored_records(batch)
    if header.compression == Compression.NONE:
        records = (record for record in records if record.offset >= from_offset)
    return message_set(records, magic, header.compression, stamp)


def message_set(records: Iterable[Record], magic: int, codec: int, stamp: int = 0) -> bytes:
    """Encode records as messages of `magic` with the same offsets; with a codec as one compressed
    message.

    `stamp` is LOG_APPEND_TIME if the timestamps are the broker's. Records are read one at a time.
    Raises TooLarge.
    """
    is_plain = codec == Compression.NONE
    inner = bytearray()
    base, last, newest = None, 0, NO_TIMESTAMP
    for record in records:
        if base is None:
            base, newest = record.offset if magic == 1 and not is_plain else 0, record.timestamp_ms
        inner += _message(record, magic, stamp, base)
        last, newest = record.offset, max(newest, record.timestamp_ms)
        if len(inner) > MAX_CONVERTED_BYTES and not is_plain:
            raise TooLarge(f"the messages exceed {MAX_CONVERTED_BYTES} bytes")
    if is_plain or not inner:
        return bytes(inner)
    value = compress(codec, bytes(inner))
    if magic == 0 and codec == Compression.LZ4:
        value = lz4_frame.set_kafka_checksum(value)
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
