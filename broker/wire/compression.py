"""Compression of records: gzip by the standard library, other codecs by pyarrow, loaded on use."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any

from urteil.broker.wire import lz4_frame
from urteil.broker.wire.primitives import KafkaServerError

MAX_DECOMPRESSED_BYTES = 1 << 28
"""The limit for decompression into one buffer; far above the batches of real clients."""
MAX_CONVERTED_BYTES = 100 << 20
"""The same limit for conversions between message formats, while a request waits."""

CHUNK_BYTES = 1 << 18
_INPUT_BYTES = 1 << 14
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
    """The codec is unknown, or its library is not installed."""


def compress(codec: int, data: bytes, level: int | None = None) -> bytes:
    """Compress records in Kafka's framing, at its default level or another (KIP-390).

    Levels are those of each library: gzip -1 or 1 to 9, lz4 1 to 17, zstd -131072 to 22. Raises
    UnsupportedCompression.
    """
    return b"".join(compress_chunks(codec, (data,), level))


def compress_chunks(
    codec: int, chunks: Iterable[bytes], level: int | None = None
) -> Iterator[bytes]:
    """`compress` for a stream of chunks."""
    if codec == Compression.NONE:
        return iter(chunks)
    if level is None:
        level = DEFAULT_LEVELS.get(codec)
    if codec == Compression.GZIP:
        return _compress_gzip(chunks, level)
    packer = _codec_of(codec, level)

    def pack(data: bytes) -> bytes:
        return bytes(packer.compress(data, asbytes=True))

    if codec == Compression.SNAPPY:
        return _snappy_frame(chunks, pack)
    if codec == Compression.LZ4:
        return lz4_frame.compress_frame(chunks, pack)
    return _zstd_frames(chunks, pack)


def _compress_gzip(chunks: Iterable[bytes], level: int | None) -> Iterator[bytes]:
    packer = zlib.compressobj(level=level or -1, wbits=16 + zlib.MAX_WBITS)
    yield from map(packer.compress, chunks)
    yield packer.flush()


def _snappy_frame(chunks: Iterable[bytes], pack: Callable[[bytes], bytes]) -> Iterator[bytes]:
    yield _XERIAL_HEADER
    for chunk in chunks:
        block = pack(chunk)
        yield _SIZE.pack(len(block)) + block


def _zstd_frames(chunks: Iterable[bytes], pack: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """One frame for each _PIECE_BYTES of records."""
    buffered: list[bytes] = []
    size = 0
    for chunk in chunks:
        buffered.append(chunk)
        size += len(chunk)
        if size >= _PIECE_BYTES:
            yield pack(b"".join(buffered))
            buffered, size = [], 0
        yield b""
    if buffered:
        yield pack(b"".join(buffered))


def decompress(codec: int, data: bytes | memoryview, limit: int = MAX_DECOMPRESSED_BYTES) -> bytes:
    """Decompress records into one buffer. Raises KafkaServerError for damaged data and beyond
    `limit` bytes, UnsupportedCompression."""
    chunks, size = [], 0
    for chunk in decompress_chunks(codec, data):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit and len(chunks) > 1:
            raise KafkaServerError(f"the decompressed records exceed {limit} bytes")
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def decompress_chunks(codec: int, data: bytes | memoryview) -> Iterator[bytes]:
    """Decompress records chunk by chunk. Chunks may be empty and have at most CHUNK_BYTES, except
    uncompressed records and snappy blocks. Raises the exceptions of `decompress`."""
    if codec == Compression.NONE:
        return iter((bytes(data),))
    if codec == Compression.GZIP:
        return _decompress_gzip(memoryview(data))
    if codec == Compression.SNAPPY:
        return _decompress_snappy(memoryview(data))
    return _decompress_stream(codec, memoryview(data))


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
            level = None  # Kafka's default level uses the fast compressor
    if level is None:
        return arrow.Codec(name)
    lowest, highest = (
        arrow.Codec.minimum_compression_level(name),
        arrow.Codec.maximum_compression_level(name),
    )
    return arrow.Codec(name, compression_level=min(max(level, lowest), highest))


def _decompress_gzip(data: memoryview) -> Iterator[bytes]:
    """Like gzip.decompress, with support for several members."""
    unpacker = None
    try:
        for start in range(0, len(data), _INPUT_BYTES):
            remaining: bytes | memoryview = data[start : start + _INPUT_BYTES]
            while remaining:
                unpacker = unpacker or zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
                yield unpacker.decompress(remaining, CHUNK_BYTES)
                if unpacker.eof:
                    remaining, unpacker = unpacker.unused_data, None
                else:
                    remaining = unpacker.unconsumed_tail
    except zlib.error as error:
        raise KafkaServerError(f"damaged gzip data: {error}") from error
    if unpacker is not None:
        raise KafkaServerError("gzip data is truncated")


def _decompress_snappy(data: memoryview) -> Iterator[bytes]:
    """Blocks in the Java library's frame, or one block without a frame, as other clients send."""
    if data[: len(_XERIAL)] != _XERIAL:
        yield _decompress_snappy_block(data, MAX_DECOMPRESSED_BYTES)
        return
    pos = len(_XERIAL_HEADER)
    while pos < len(data):
        if len(data) - pos < _SIZE.size:
            raise KafkaServerError("truncated snappy data")
        (size,) = _SIZE.unpack_from(data, pos)
        pos += _SIZE.size
        if not 0 <= size <= len(data) - pos:
            raise KafkaServerError(
                f"a snappy block has {size} bytes, but only {len(data) - pos} bytes remain"
            )
        yield _decompress_snappy_block(data[pos : pos + size], MAX_DECOMPRESSED_BYTES)
        pos += size


def _decompress_snappy_block(block: memoryview, limit: int) -> bytes:
    size, shift = 0, 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
    # Snappy's densest element expands 3 bytes to 64: a larger size is impossible.
    if size > min(limit, len(block) * 64):
        raise KafkaServerError(f"a snappy block declares the impossible size {size}")
    codec = _codec_of(Compression.SNAPPY)
    try:
        return bytes(codec.decompress(block, decompressed_size=size, asbytes=True))
    except (OSError, ValueError) as error:
        raise KafkaServerError(f"damaged snappy data: {error}") from error


def _decompress_stream(codec: int, data: memoryview) -> Iterator[bytes]:
    arrow = _arrow(codec)
    try:
        name = Compression(codec).name.lower()
        with arrow.CompressedInputStream(arrow.BufferReader(data), name) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
    except (OSError, ValueError) as error:
        raise KafkaServerError(f"damaged compressed data: {error}") from error
