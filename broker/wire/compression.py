"""Compression of records: gzip by the standard library, the other codecs by pyarrow when met."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any

from urteil.broker.wire import lz4_frame
from urteil.broker.wire.primitives import KafkaServerError

MAX_DECOMPRESSED_BYTES = 1 << 28
"""What is unpacked as a whole: no batch of honest clients comes near."""
MAX_CONVERTED_BYTES = 100 << 20
"""The same where a request waits for it: between the formats of messages."""

CHUNK_BYTES = 1 << 18
_FED_BYTES = 1 << 14
_PIECE_BYTES = 1 << 24
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
    return b"".join(packed(codec, (data,), level))


def packed(codec: int, chunks: Iterable[bytes], level: int | None = None) -> Iterator[bytes]:
    """The same for records that come, and go, chunk by chunk."""
    if codec == Compression.NONE:
        return iter(chunks)
    if level is None:
        level = DEFAULT_LEVELS.get(codec)
    if codec == Compression.GZIP:
        return _gzip(chunks, level)
    packer = _codec_of(codec, level)

    def pack(data: bytes) -> bytes:
        return bytes(packer.compress(data, asbytes=True))

    if codec == Compression.SNAPPY:
        return _snappy_frame(chunks, pack)
    if codec == Compression.LZ4:
        return lz4_frame.framed(chunks, pack)
    return _zstd_frames(chunks, pack)


def _gzip(chunks: Iterable[bytes], level: int | None) -> Iterator[bytes]:
    packer = zlib.compressobj(level=level or -1, wbits=16 + zlib.MAX_WBITS)
    yield from map(packer.compress, chunks)
    yield packer.flush()


def _snappy_frame(chunks: Iterable[bytes], pack: Callable[[bytes], bytes]) -> Iterator[bytes]:
    yield _XERIAL_HEADER
    for chunk in chunks:
        block = pack(chunk)
        yield _SIZE.pack(len(block)) + block


def _zstd_frames(chunks: Iterable[bytes], pack: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """One frame, but for records of more than _PIECE_BYTES."""
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size >= _PIECE_BYTES:
            yield pack(b"".join(parts))
            parts, size = [], 0
        yield b""
    if parts:
        yield pack(b"".join(parts))


def decompress(codec: int, data: bytes | memoryview, limit: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """Decompress records as a whole. KafkaServerError for broken data and beyond `limit` bytes,
    UnsupportedCompression as above."""
    chunks, size = [], 0
    for chunk in unpacked(codec, data):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit and len(chunks) > 1:
            raise KafkaServerError(f"records that unpack to more than {limit} bytes")
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def unpacked(codec: int, data: bytes | memoryview) -> Iterator[bytes]:
    """Decompress records chunk by chunk, some of them empty, none larger than CHUNK_BYTES but where
    there is no stream (uncompressed records, one block of snappy). Errors as above."""
    if codec == Compression.NONE:
        return iter((bytes(data),))
    if codec == Compression.GZIP:
        return _gunzip(memoryview(data))
    if codec == Compression.SNAPPY:
        return _unsnappy(memoryview(data))
    return _stream(codec, memoryview(data))


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


def _gunzip(data: memoryview) -> Iterator[bytes]:
    """Like gzip.decompress, members one after the other included."""
    unpacker = None
    try:
        for start in range(0, len(data), _FED_BYTES):
            fed: bytes | memoryview = data[start : start + _FED_BYTES]
            while fed:
                unpacker = unpacker or zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
                yield unpacker.decompress(fed, CHUNK_BYTES)
                if unpacker.eof:
                    fed, unpacker = unpacker.unused_data, None
                else:
                    fed = unpacker.unconsumed_tail
    except zlib.error as error:
        raise KafkaServerError(f"broken gzip data: {error}") from error
    if unpacker is not None:
        raise KafkaServerError("gzip data is truncated")


def _unsnappy(data: memoryview) -> Iterator[bytes]:
    """Blocks in the frame of the Java library, or one bare block as other clients send it."""
    if data[: len(_XERIAL)] != _XERIAL:
        yield _snappy_block(data, MAX_DECOMPRESSED_BYTES)
        return
    pos = len(_XERIAL_HEADER)
    while pos < len(data):
        if len(data) - pos < _SIZE.size:
            raise KafkaServerError("truncated snappy data")
        (size,) = _SIZE.unpack_from(data, pos)
        pos += _SIZE.size
        if not 0 <= size <= len(data) - pos:
            raise KafkaServerError(
                f"a snappy block of {size} bytes where {len(data) - pos} are left"
            )
        yield _snappy_block(data[pos : pos + size], MAX_DECOMPRESSED_BYTES)
        pos += size


def _snappy_block(block: memoryview, limit: int) -> bytes:
    size, shift = 0, 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    # Snappy's densest element turns 3 bytes into 64; a size beyond that is a lie.
    if size > min(limit, len(block) * 64):
        raise KafkaServerError(f"a snappy block that claims {size} bytes")
    codec = _codec_of(Compression.SNAPPY)
    try:
        return bytes(codec.decompress(block, decompressed_size=size, asbytes=True))
    except (OSError, ValueError) as error:
        raise KafkaServerError(f"broken snappy data: {error}") from error


def _stream(codec: int, data: memoryview) -> Iterator[bytes]:
    arrow = _arrow(codec)
    try:
        name = Compression(codec).name.lower()
        with arrow.CompressedInputStream(arrow.BufferReader(data), name) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
    except (OSError, ValueError) as error:
        raise KafkaServerError(f"broken compressed data: {error}") from error
