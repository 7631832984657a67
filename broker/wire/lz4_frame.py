"""LZ4 frames in Kafka's format: with independent blocks.

Java's reader rejects linked blocks, so this module builds the frames from blocks of any LZ4
library. Messages of magic 0 have a nonstandard header checksum: old clients included the frame's
magic number in it (KAFKA-3160). One byte of such frames is therefore changed on input and output.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator

BLOCK_BYTES = 64 * 1024
"""Kafka's own block size; the descriptor says so."""

_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"  # magic; independent blocks of 64 KiB; checksum
_END = bytes(4)
_UNCOMPRESSED = 1 << 31
_SIZE = struct.Struct("<I")
_MAGIC_BYTES = 4
_SIZE_FLAG, _DICTIONARY_FLAG = 0x08, 0x01
_MASK = 0xFFFFFFFF
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_SMALL_BYTES = 16


def compress_frame(
    chunks: Iterable[bytes], compress_block: Callable[[bytes], bytes]
) -> Iterator[bytes]:
    """Compress chunks into a frame; a block that does not shrink is stored uncompressed."""
    yield _HEADER
    pending = b""
    for chunk in chunks:
        data = pending + chunk if pending else chunk
        full_bytes = len(data) // BLOCK_BYTES * BLOCK_BYTES
        for start in range(0, full_bytes, BLOCK_BYTES):
            yield _block(data[start : start + BLOCK_BYTES], compress_block)
        pending = data[full_bytes:]
    yield (_block(pending, compress_block) if pending else b"") + _END


def _block(plain: bytes, compress_block: Callable[[bytes], bytes]) -> bytes:
    block = compress_block(plain)
    if len(block) < len(plain):
        return _SIZE.pack(len(block)) + block
    return _SIZE.pack(len(plain) | _UNCOMPRESSED) + plain


def set_standard_checksum(frame: bytes) -> bytes:
    """The frame with the header checksum of the LZ4 specification."""
    return _with_checksum(frame, _MAGIC_BYTES)


def set_kafka_checksum(frame: bytes) -> bytes:
    """The frame with the nonstandard header checksum of messages of magic 0."""
    return _with_checksum(frame, 0)


def _with_checksum(frame: bytes, start: int) -> bytes:
    if len(frame) <= _MAGIC_BYTES:
        return frame
    flags = frame[_MAGIC_BYTES]
    position = _MAGIC_BYTES + 2
    position += 8 if flags & _SIZE_FLAG else 0
    position += 4 if flags & _DICTIONARY_FLAG else 0
    checksum = _xxh32(frame[start:position]) >> 8 & 0xFF
    return frame[:position] + bytes((checksum,)) + frame[position + 1 :]


def _xxh32(data: bytes) -> int:
    """xxHash of 32 bits with seed 0 (its specification, section "XXH32")."""
    prime1, prime2, prime3, prime4, prime5 = _PRIMES
    position = 0
    if len(data) >= _SMALL_BYTES:
        lanes = [(prime1 + prime2) & _MASK, prime2, 0, -prime1 & _MASK]
        while len(data) - position >= _SMALL_BYTES:
            for index, word in enumerate(struct.unpack_from("<4I", data, position)):
                lanes[index] = _rotate(lanes[index] + word * prime2, 13) * prime1 & _MASK
            position += _SMALL_BYTES
        digest = sum(_rotate(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18), strict=True))
    else:
        digest = prime5
    digest += len(data)
    while len(data) - position >= 4:
        (word,) = struct.unpack_from("<I", data, position)
        digest = _rotate(digest + word * prime3, 17) * prime4
        position += 4
    for byte in data[position:]:
        digest = _rotate(digest + byte * prime5, 11) * prime1
    digest &= _MASK
    digest = (digest ^ digest >> 15) * prime2 & _MASK
    digest = (digest ^ digest >> 13) * prime3 & _MASK
    return digest ^ digest >> 16


def _rotate(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK
