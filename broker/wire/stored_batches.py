"""Batches of any format in logs and fetches: magic 2, and messages of magic 0 and 1.

A message of magic 0 or 1, plain or compressed, counts as a batch without leader epoch, producer or
control records. Its head has only its last offset, which `BatchHeader` then also has as base
offset; `first_offset` reads the first one from the content.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from urteil.broker.wire import batch_header
from urteil.broker.wire.batch_header import (
    LOG_OVERHEAD_BYTES,
    MAGIC_POSITION,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    bytes_needed,
    parse_header,
)
from urteil.broker.wire.old_messages import (
    ENTRY,
    KNOWN_ATTRIBUTES,
    SMALLEST,
    TIMESTAMP,
    iter_old_messages,
)
from urteil.broker.wire.primitives import Buffer, CorruptBatch
from urteil.broker.wire.produce_entries import NEWEST_MAGIC
from urteil.broker.wire.records import Record, iter_records


def read_header(data: Buffer, pos: int = 0) -> BatchHeader:
    """The header of a batch of any magic. Raises CorruptBatch if truncated or of unknown magic."""
    if len(data) - pos > MAGIC_POSITION and data[pos + MAGIC_POSITION] < NEWEST_MAGIC:
        return _old_header(data, pos)
    return parse_header(data, pos)


def _old_header(data: Buffer, pos: int) -> BatchHeader:
    if len(data) - pos < ENTRY.size + TIMESTAMP.size:
        raise CorruptBatch("truncated message")
    offset, length, crc, magic, attributes = ENTRY.unpack_from(data, pos)
    if length + LOG_OVERHEAD_BYTES < SMALLEST[magic]:
        raise CorruptBatch(f"a message of {length} bytes is smaller than any message")
    time_ms = TIMESTAMP.unpack_from(data, pos + ENTRY.size)[0] if magic else NO_TIMESTAMP
    return BatchHeader(
        base_offset=offset,
        batch_length=length,
        partition_leader_epoch=-1,
        magic=magic,
        crc=crc,
        attributes=attributes & KNOWN_ATTRIBUTES[magic],
        last_offset_delta=0,
        base_timestamp=time_ms,
        max_timestamp=time_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=-1,
        base_sequence=NO_SEQUENCE,
        records_count=1,
    )


def iter_stored(
    data: Buffer, *, allow_partial_tail: bool = False
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """The batches of any magic in `data`, as views of its memory; checksums are not verified.

    Raises CorruptBatch for an unknown magic, a wrong length or a truncated batch; with
    `allow_partial_tail` a truncated last one is ignored.
    """
    view = memoryview(data)
    pos, end = 0, len(view)
    while pos < end:
        if allow_partial_tail and end - pos < bytes_needed(view, pos, end):
            return
        header = read_header(view, pos)
        stop = pos + header.size
        if stop > end:
            raise CorruptBatch(f"a batch of {header.size} bytes, but only {end - pos} bytes remain")
        yield header, view[pos:stop]
        pos = stop


def is_crc_valid(batch: Buffer) -> bool:
    """Whether the checksum of a complete batch of any magic is the one in its header."""
    if len(batch) > MAGIC_POSITION and batch[MAGIC_POSITION] < NEWEST_MAGIC:
        stored = int.from_bytes(batch[LOG_OVERHEAD_BYTES:MAGIC_POSITION], "big")
        return zlib.crc32(memoryview(batch)[MAGIC_POSITION:]) == stored
    return batch_header.is_crc_valid(batch)


def iter_stored_records(batch: Buffer) -> Iterator[Record]:
    """Read the records of one complete batch of any magic in order, decompressing them.

    Raises CorruptBatch for malformed records, UnsupportedCompression.
    """
    if len(batch) > MAGIC_POSITION and batch[MAGIC_POSITION] < NEWEST_MAGIC:
        return iter_old_messages(batch, same_magic_inside=False)
    return iter_records(batch)


def first_offset(header: BatchHeader, batch: Buffer) -> int:
    """The offset of a batch's first record; the last one's for old compressed messages that cannot
    be read."""
    if header.magic == NEWEST_MAGIC or not header.compression:
        return header.base_offset
    try:
        return next(iter_stored_records(batch)).offset
    except CorruptBatch:
        return header.base_offset
