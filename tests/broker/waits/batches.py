"""Batches that are small on the wire and large in memory, made without ever being whole here."""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from functools import cache

import crc32c
import pyarrow

from urteil.broker.wire.batch_header import (
    ATTRIBUTES_POSITION,
    CRC_LAYOUT,
    CRC_POSITION,
    HEADER_BYTES,
    HEADER_LAYOUT,
    LOG_OVERHEAD_BYTES,
)
from urteil.broker.wire.compression import Compression
from urteil.broker.wire.varints import put_varint

NOW_MS = time.time_ns() // 1_000_000
MIB = 1 << 20
_ZEROS = bytes(MIB)


@cache
def zeros(codec: int, mib: int) -> bytes:
    """One record whose value is `mib` MiB of zeros."""
    head = bytearray(b"\0\0\0\1")  # attributes, time, offset, no key
    put_varint(head, mib * MIB)
    size = bytearray()
    put_varint(size, len(head) + mib * MIB + 1)
    return batch(codec, 1, [bytes(size + head), *[_ZEROS] * mib, b"\0"])


@cache
def tiny_records(codec: int, count: int) -> bytes:
    """`count` records without key and value, each as small as a record can be."""
    return batch(codec, count, _tiny(count))


def _tiny(count: int) -> Iterator[bytes]:
    out = bytearray()
    for number in range(count):
        body = bytearray(b"\0\0")
        put_varint(body, number)
        body += b"\1\1\0"
        put_varint(out, len(body))
        out += body
        if len(out) >= MIB:
            yield bytes(out)
            out.clear()
    yield bytes(out)


def batch(codec: int, count: int, body: Iterable[bytes]) -> bytes:
    """A batch of `count` records of one time, whose bytes are `body`."""
    payload = compressed(codec, body)
    out = bytearray(HEADER_BYTES) + payload
    length = len(out) - LOG_OVERHEAD_BYTES
    HEADER_LAYOUT.pack_into(
        out, 0, 0, length, -1, 2, 0, codec, count - 1, NOW_MS, NOW_MS, -1, -1, -1, count
    )
    CRC_LAYOUT.pack_into(out, CRC_POSITION, crc32c.crc32c(bytes(out[ATTRIBUTES_POSITION:])))
    return bytes(out)


def compressed(codec: int, body: Iterable[bytes]) -> bytes:
    """The codec's stream, as producers make it."""
    if codec == Compression.GZIP:
        packer = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
        return b"".join([*map(packer.compress, body), packer.flush()])
    if codec == Compression.SNAPPY:
        blocks = [bytes(pyarrow.Codec("snappy").compress(part, asbytes=True)) for part in body]
        framing = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
        return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + framing
    if codec == Compression.NONE:
        return b"".join(body)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, Compression(codec).name.lower()) as stream:
        for part in body:
            stream.write(part)
    return bytes(sink.getvalue())
