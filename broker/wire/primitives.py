"""What compiled codecs are made of: varints, UUIDs, the error of a bad peer."""

from __future__ import annotations

import codecs
from functools import lru_cache
from uuid import UUID

Buffer = bytes | bytearray | memoryview

ZERO_UUID = UUID(int=0)
"""Kafka's way to say that there is no id."""


class WireError(Exception):
    """The peer sent what the protocol does not allow; its connection is to be closed."""


class CorruptBatch(WireError):
    """Records inside a sound request are broken: Kafka's CORRUPT_MESSAGE, no reason to close."""


class KafkaServerError(CorruptBatch):
    """Records that Apache Kafka stumbles over, as broken compression: its UNKNOWN_SERVER_ERROR."""


class TooLarge(CorruptBatch):
    """Records that are sound, yet unpack to more than is ever read as a whole."""


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
        raise ValueError(f"{value} is no unsigned 32-bit integer")
    return _uvarint_bytes(value)


def read_uvarint(data: Buffer, pos: int) -> tuple[int, int]:
    """Read a varint of at most 32 bits; IndexError past the end of the data.

    From 2^31 on it is below 0, and what its fifth byte has beyond 32 bits falls off, as in Java.
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
    return _signed(value), pos + 1


def _signed(value: int) -> int:
    return ((value + (1 << 31)) & _ALL) - (1 << 31)


def read_length(data: Buffer, pos: int) -> tuple[int, int]:
    """Read the varint before a string or an array: one more than its length, 0 being null."""
    value, pos = read_uvarint(data, pos)
    return _signed(value - 1), pos


def skip_tags(data: Buffer, pos: int, count: int) -> int:
    """The position after `count` tagged fields that nobody here knows."""
    end = len(data)
    for _ in range(count):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        if not 0 <= size <= end - pos:
            raise WireError(f"tagged field of {size} bytes where {end - pos} are left")
        pos += size
    return pos


def replaced(error: UnicodeError) -> tuple[str, int]:
    """What stands for bytes that are no UTF-8, and where to go on: a surrogate is one, as in Java
    (for Python each of its bytes is)."""
    assert isinstance(error, UnicodeDecodeError)
    data, end = error.object, error.end
    if data[error.start] == 0xED and data[end : end + 1] >= b"\x80" and data[end] < 0xC0:
        end += 1 + (len(data) > end + 1 and data[end + 1] & 0xC0 == 0x80)
    return "\ufffd", end


AS_JAVA = "urteil.java"
codecs.register_error(AS_JAVA, replaced)


@lru_cache(maxsize=8192)
def uuid_from_bytes(data: bytes) -> UUID:
    """A UUID of 16 bytes in network order; cached, since topic ids come again and again."""
    return UUID(bytes=data)
