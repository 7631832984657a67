"""Primitives of the compiled codecs: varints, UUIDs, text, protocol errors."""

from __future__ import annotations

import codecs
from functools import lru_cache
from uuid import UUID

Buffer = bytes | bytearray | memoryview

ZERO_UUID = UUID(int=0)
"""Kafka's id for "no id"."""


class WireError(Exception):
    """The peer violated the protocol; its connection must be closed."""


class CorruptBatch(WireError):
    """Corrupt records in a valid request: CORRUPT_MESSAGE; the connection stays open."""


class KafkaServerError(CorruptBatch):
    """Records that Apache Kafka answers with UNKNOWN_SERVER_ERROR, such as damaged compression."""


class TooLarge(CorruptBatch):
    """Valid records whose decompressed size exceeds a limit."""


_ALL = (1 << 32) - 1


def _uvarint_bytes(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_SMALL = [_uvarint_bytes(value) for value in range(1 << 12)]


def encode_uvarint(value: int) -> bytes:
    """An unsigned varint of at most 32 bits, low groups first."""
    if 0 <= value < 1 << 12:
        return _SMALL[value]
    if not 0 <= value < 1 << 32:
        raise ValueError(f"{value} is not an unsigned 32-bit integer")
    return _uvarint_bytes(value)


def read_uvarint(data: Buffer, pos: int) -> tuple[int, int]:
    """Read a varint of at most 32 bits; IndexError past the end of the data.

    As in Java, values from 2^31 on are negative, and bits beyond 32 are dropped.
    """
    byte = data[pos]
    if byte < 0x80:
        return byte, pos + 1
    value, shift = byte & 0x7F, 7
    while True:
        pos += 1
        byte = data[pos]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise WireError("varint longer than five bytes")
    return _to_signed(value), pos + 1


def _to_signed(value: int) -> int:
    return ((value + (1 << 31)) & _ALL) - (1 << 31)


def read_length(data: Buffer, pos: int) -> tuple[int, int]:
    """Read the varint before a string or an array: one more than its length, 0 being null."""
    value, pos = read_uvarint(data, pos)
    return _to_signed(value - 1), pos


def skip_tags(data: Buffer, pos: int, count: int) -> int:
    """The position after `count` unknown tagged fields."""
    end = len(data)
    for _ in range(count):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        if not 0 <= size <= end - pos:
            raise WireError(f"a tagged field has {size} bytes, but only {end - pos} bytes remain")
        pos += size
    return pos


def replace_invalid_utf8(error: UnicodeError) -> tuple[str, int]:
    """A codec error handler: (replacement, next position) for invalid UTF-8. A surrogate is
    replaced once, as in Java; Python would replace each of its bytes."""
    assert isinstance(error, UnicodeDecodeError)
    data, end = error.object, error.end
    if data[error.start] == 0xED and data[end : end + 1] >= b"\x80" and data[end] < 0xC0:
        end += 1 + (len(data) > end + 1 and data[end + 1] & 0xC0 == 0x80)
    return "\ufffd", end


AS_JAVA = "urteil.java"
codecs.register_error(AS_JAVA, replace_invalid_utf8)


@lru_cache(maxsize=8192)
def uuid_from_bytes(data: bytes) -> UUID:
    """A UUID of 16 bytes in network order; cached, since topic ids repeat."""
    return UUID(bytes=data)
