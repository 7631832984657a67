"""Messages of magic 0 and 1 that are small on the wire and large in memory."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from functools import cache

from tests.broker.waits.batches import MIB, NOW_MS, compressed

_ZEROS = bytes(MIB)
_LENGTH = struct.Struct(">i")


@cache
def old_zeros(magic: int, codec: int, mib: int) -> bytes:
    """A compressed message that holds one whose value is `mib` MiB of zeros."""
    return _wrapper(magic, codec, _whole(magic, mib))


@cache
def old_messages(magic: int, codec: int, count: int) -> bytes:
    """A compressed message that holds `count` empty ones."""
    inner = (_head(number, body) + body for number, body in _empty(magic, count))
    return _wrapper(magic, codec, iter([b"".join(inner)]))


def _empty(magic: int, count: int) -> Iterator[tuple[int, bytes]]:
    body = _start(magic, 0) + _LENGTH.pack(-1) * 2
    return ((number, body) for number in range(count))


def _whole(magic: int, mib: int) -> Iterator[bytes]:
    start = _start(magic, 0) + _LENGTH.pack(-1) + _LENGTH.pack(mib * MIB)
    crc = zlib.crc32(start)
    for _ in range(mib):
        crc = zlib.crc32(_ZEROS, crc)
    yield struct.pack(">qiI", 0, len(start) + mib * MIB + 4, crc) + start
    for _ in range(mib):
        yield _ZEROS


def _wrapper(magic: int, codec: int, inner: Iterator[bytes]) -> bytes:
    value = compressed(codec, inner)
    body = _start(magic, codec) + _LENGTH.pack(-1) + _LENGTH.pack(len(value)) + value
    return _head(0, body) + body


def _start(magic: int, attributes: int) -> bytes:
    return bytes((magic, attributes)) + (struct.pack(">q", NOW_MS) if magic else b"")


def _head(offset: int, body: bytes) -> bytes:
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body))
