"""What compiled codecs are made of: varints, UUIDs, the error of a bad peer."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

Buffer = bytes | bytearray | memoryview

ZERO_UUID = UUID(int=0)
"""Kafka's way to say that there is no id."""


class WireError(Exception):
    """The peer sent what the protocol does not allow; its connection is to be closed."""


class CorruptBatch(WireError):
    """Records inside a sound request are broken: Kafka's CORRUPT_MESSAGE, no reason to close."""


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
    """Read an unsigned varint of at most 32 bits; IndexError past the end of the data."""
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
    if value >= 1 << 32:
        raise WireError("varint beyond 32 bits")
    return value, pos + 1


def skip_tags(data: Buffer, pos: int, count: int) -> int:
    """The position after `count` tagged fields that nobody here knows."""
    end = len(data)
    for _ in range(count):
        _, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        if size > end - pos:
            raise WireError(f"tagged field of {size} bytes where {end - pos} are left")
        pos += size
    return pos


@lru_cache(maxsize=8192)
def uuid_from_bytes(data: bytes) -> UUID:
    """A UUID of 16 bytes in network order; cached, since topic ids come again and again."""
    return UUID(bytes=data)
