"""Compression of records: gzip by the standard library, the other codecs by pyarrow when met."""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from typing import Any

from urteil.broker.wire import lz4_frame
from urteil.broker.wire.primitives import Unforeseen

MAX_DECOMPRESSED_BYTES = 1 << 30
"""No batch of honest clients comes near; a bomb must not take the broker's memory."""

_CHUNK_BYTES = 1 << 20
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL + struct.pack(">ii", 1, 1)
_SIZE = struct.Struct(">i")


class Compression(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


DEFAULT_LEVELS: dict[int, int] = {Compression.GZIP: -1, Compression.LZ4: 9, Compression.ZSTD: 3}


class UnsupportedCompression(Exception):
    """No codec of that number, or no library for it here."""


def compress(codec: int, data: bytes, level: int | None = None) -> bytes:
    """Compress records as Kafka frames them, at its default level or another (KIP-390).

    Levels are each library's own: gzip -1 or 1 to 9, lz4 1 to 17, zstd -131072 to 22.
    UnsupportedCompression without a library.
    """
    if codec == Compression.NONE:
        return data
    if level is None:
        level = DEFAULT_LEVELS.get(codec)
    if codec == Compression.GZIP:
        packer = zlib.compressobj(level=level or -1, wbits=16 + zlib.MAX_WBITS)
        return packer.compress(data) + packer.flush()
    if codec == Compression.SNAPPY:
        block = _codec_of(codec).compress(data, asbytes=True)
        return _XERIAL_HEADER + _SIZE.pack(len(block)) + bytes(block)
    packer = _codec_of(codec, level)
    if codec == Compression.LZ4:
        return lz4_frame.framed(data, lambda block: bytes(packer.compress(block, asbytes=True)))
    return bytes(packer.compress(data, asbytes=True))


def decompress(codec: int, data: bytes | memoryview) -> bytes:
    """Decompress records. Unforeseen for broken data, UnsupportedCompression as above."""
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


def _codec_of(codec: int, level: int | None = None) -> Any:
    arrow, name = _arrow(codec), Compression(codec).name.lower()
    if codec == Compression.LZ4:
        name = "lz4_raw"
        if level == DEFAULT_LEVELS[codec]:
            level = None  # Kafka's default is the fast compressor, whatever its number says
    if level is None:
        return arrow.Codec(name)
    lowest, highest = (
        arrow.Codec.minimum_compression_level(name),
        arrow.Codec.maximum_compression_level(name),
    )
    return arrow.Codec(name, compression_level=min(max(level, lowest), highest))


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
                raise Unforeseen("gzip data is truncated or too large")
            rest = unpacker.unused_data
    except zlib.error as error:
        raise Unforeseen(f"broken gzip data: {error}") from error
    return b"".join(out)


def _unsnappy(data: bytes) -> bytes:
    """Blocks in the frame of the Java library, or one bare block as other clients send it."""
    if not data.startswith(_XERIAL):
        return _snappy_block(data, MAX_DECOMPRESSED_BYTES)
    out: list[bytes] = []
    pos, left = len(_XERIAL_HEADER), MAX_DECOMPRESSED_BYTES
    while pos < len(data):
        if len(data) - pos < _SIZE.size:
            raise Unforeseen("truncated snappy data")
        (size,) = _SIZE.unpack_from(data, pos)
        pos += _SIZE.size
        if not 0 <= size <= len(data) - pos:
            raise Unforeseen(f"a snappy block of {size} bytes where {len(data) - pos} are left")
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
        raise Unforeseen(f"a snappy block that claims {size} bytes")
    codec = _codec_of(Compression.SNAPPY)
    try:
        return bytes(codec.decompress(block, decompressed_size=size, asbytes=True))
    except (OSError, ValueError) as error:
        raise Unforeseen(f"broken snappy data: {error}") from error


def _stream(codec: int, data: bytes) -> bytes:
    arrow = _arrow(codec)
    out = bytearray()
    try:
        name = Compression(codec).name.lower()
        with arrow.CompressedInputStream(arrow.BufferReader(data), name) as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                out += chunk
                if len(out) > MAX_DECOMPRESSED_BYTES:
                    raise Unforeseen(f"{name} data is too large")
    except (OSError, ValueError) as error:
        raise Unforeseen(f"broken compressed data: {error}") from error
    return bytes(out)
