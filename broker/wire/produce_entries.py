"""What a producer may send in one buffer: batches of magic 2, or messages of magic 0 and 1.

All begin alike: offset (8 bytes), length (4), a word (4), magic. An entry is one such thing.
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
    """The magic and bytes of each whole entry; a cut one at the end is passed over, as Kafka does.

    CorruptBatch for a length that cannot be and for an unknown magic (source:
    `ByteBufferLogInputStream`). Nothing else is checked.
    """
    view = memoryview(data)
    pos, end = 0, len(view)
    while end - pos >= LOG_OVERHEAD_BYTES:
        (length,) = _LENGTH.unpack_from(view, pos + 8)
        if length < SMALLEST_MESSAGE_BYTES:
            raise CorruptBatch(f"a record of {length} bytes, less than the smallest")
        if end - pos <= MAGIC_POSITION:
            return
        magic = view[pos + MAGIC_POSITION]
        if magic > NEWEST_MAGIC:
            raise CorruptBatch(f"a batch of magic {magic}")
        stop = pos + LOG_OVERHEAD_BYTES + length
        if stop > end:
            return
        yield magic, view[pos:stop]
        pos = stop


def is_sole_batch(data: Buffer) -> bool:
    """Whether the buffer is one batch of magic 2 by its length: the normal case, told quickly."""
    return (
        len(data) > MAGIC_POSITION
        and data[MAGIC_POSITION] == NEWEST_MAGIC
        and int.from_bytes(data[8:LOG_OVERHEAD_BYTES], "big") == len(data) - LOG_OVERHEAD_BYTES
    )
