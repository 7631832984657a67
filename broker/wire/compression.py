"""Compression of records: gzip by the standard library, the other codecs by pyarrow when met."""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from typing import Any

from urteil.broker.wire.primitives import CorruptBatch

MAX_DECOMPRESSED_BYTES = 1 << 30
"""No batch of honest clients comes near; a bomb must not take the broker's memory."""

_CHUNK_BYTES = 1 << 20
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL + struct.pack(">ii", 1, 1)
_LZ4_FLAGS = 4
_LZ4_INDEPENDENT = 0x20
_SIZE = struct.Struct(">i")


class Compression(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class UnsupportedCompression(Exception):
    """No codec of that number, or no library for it here."""


def compress(codec: int, data: bytes) -> bytes:
    """Compress records as Kafka frames them; UnsupportedCompression without a library."""
    if codec == Compression.NONE:
        return data
    if codec == Compression.GZIP:
        packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
        return packer.compress(data) + packer.flush()
    if codec == Compression.SNAPPY:
        block = _codec_of(codec).compress(data, asbytes=True)
        return _XERIAL_HEADER + _SIZE.pack(len(block)) + bytes(block)
    frame = bytes(_codec_of(codec).compress(data, asbytes=True))
    if codec == Compression.LZ4 and not frame[_LZ4_FLAGS] & _LZ4_INDEPENDENT:
        raise UnsupportedCompression("LZ4 of linked blocks, which Java clients refuse")
    return frame


def decompress(codec: int, data: bytes | memoryview) -> bytes:
    """Decompress records. CorruptBatch for broken data, UnsupportedCompression as above."""
    if codec == Compression.NONE:
        return bytes(data)
    if codec == Compression.GZIP:
        return _gunzip(bytes(data))
    if codec == Compression.SNAPPY:
        return _unsnappy(bytes(data))
    return _stream(codec, bytes(data))


def _arrow(codec: int) -> Any:
    if codec not in (Compression.SNAPPY, Compression.LZ4, Compression.ZSTD):
        raise UnsupportedCompression(f"compression {codec}")
    try:
        import pyarrow
    except ImportError as error:
        raise UnsupportedCompression(f"{Compression(codec).name} needs pyarrow") from error
    return pyarrow


def _codec_of(codec: int) -> Any:
    return _arrow(codec).Codec(Compression(codec).name.lower())


def _gunzip(rest: bytes) -> bytes:
    """Like gzip.decompress, members one after the other included, but with a limit."""
    out: list[bytes] = []
    left = MAX_DECOMPRESSED_BYTES
    try:
        while rest and left > 0:
            unpacker = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
            out.append(unpacker.decompress(rest, left))
            left -= len(out[-1])
            if not unpacker.eof:
                raise CorruptBatch("gzip data is truncated or too large")
            rest = unpacker.unused_data
    except zlib.error as error:
        raise CorruptBatch(f"broken gzip data: {error}") from error
    return b"".join(out)


def _unsnappy(data: bytes) -> bytes:
    """Blocks in the frame of the Java library, or one bare block as other clients send it."""
    if not data.startswith(_XERIAL):
        return _snappy_block(data, MAX_DECOMPRESSED_BYTES)
    out: list[bytes] = []
    pos, left = len(_XERIAL_HEADER), MAX_DECOMPRESSED_BYTES
    while pos < len(data):
        if len(data) - pos < _SIZE.size:
            raise CorruptBatch("truncated snappy data")
        (size,) = _SIZE.unpack_from(data, pos)
        pos += _SIZE.size
        if not 0 <= size <= len(data) - pos:
            raise CorruptBatch(f"a snappy block of {size} bytes where {len(data) - pos} are left")
        out.append(_snappy_block(data[pos : pos + size], left))
        left -= len(out[-1])
        pos += size
    return b"".join(out)


def _snappy_block(block: bytes, limit: int) -> bytes:
    size, shift = 0, 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    # Snappy's densest element turns 3 bytes into 64; a size beyond that is a lie.
    if size > min(limit, len(block) * 64):
        raise CorruptBatch(f"a snappy block that claims {size} bytes")
    codec = _codec_of(Compression.SNAPPY)
    try:
        return bytes(codec.decompress(block, decompressed_size=size, asbytes=True))
    except (OSError, ValueError) as error:
        raise CorruptBatch(f"broken snappy data: {error}") from error


def _stream(codec: int, data: bytes) -> bytes:
    arrow = _arrow(codec)
    out = bytearray()
    try:
        name = Compression(codec).name.lower()
        with arrow.CompressedInputStream(arrow.BufferReader(data), name) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                out += chunk
                if len(out) > MAX_DECOMPRESSED_BYTES:
                    raise CorruptBatch(f"{name} data is too large")
    except (OSError, ValueError) as error:
        raise CorruptBatch(f"broken compressed data: {error}") from error
    return bytes(out)
