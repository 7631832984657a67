"""Entries of a Produce buffer: batches of magic 2, or messages of magic 0 and 1.

Every entry begins with offset (8 bytes), length (4), four other bytes and the magic.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from urteil.broker.wire.batch_header import LOG_OVERHEAD_BYTES, MAGIC_POSITION
from urteil.broker.wire.primitives import Buffer, CorruptBatch

SMALLEST_MESSAGE_BYTES = 14
NEWEST_MAGIC = 2
_LENGTH = struct.Struct(">i")


def iter_entries(data: Buffer) -> Iterator[tuple[int, memoryview]]:
    """(magic, bytes) of each complete entry; a truncated last one is ignored, as in Kafka.

    Raises CorruptBatch for an impossible length or an unknown magic (source:
    `ByteBufferLogInputStream`). Nothing else is checked.
    """
    view = memoryview(data)
    pos, end = 0, len(view)
    while end - pos >= LOG_OVERHEAD_BYTES:
        (length,) = _LENGTH.unpack_from(view, pos + 8)
        if length < SMALLEST_MESSAGE_BYTES:
            raise CorruptBatch(f"an entry of {length} bytes is smaller than any message")
        if end - pos <= MAGIC_POSITION:
            return
        magic = view[pos + MAGIC_POSITION]
        if magic > NEWEST_MAGIC:
            raise CorruptBatch(f"unknown magic {magic}")
        stop = pos + LOG_OVERHEAD_BYTES + length
        if stop > end:
            return
        yield magic, view[pos:stop]
        pos = stop


def is_sole_batch(data: Buffer) -> bool:
    """Whether the buffer is exactly one batch of magic 2: a fast check for the normal case."""
    return (
        len(data) > MAGIC_POSITION
        and data[MAGIC_POSITION] == NEWEST_MAGIC
        and int.from_bytes(data[8:LOG_OVERHEAD_BYTES], "big") == len(data) - LOG_OVERHEAD_BYTES
    )
