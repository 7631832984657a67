"""Scans of a segment file: over the heads of its batches, or over complete batches."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from urteil.broker.log.storage import Buffer, File
from urteil.broker.wire.batch_header import COMPRESSION_MASK
from urteil.broker.wire.batches import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    NEWEST_MAGIC,
    BatchHeader,
    read_header,
)
from urteil.broker.wire.old_messages import SMALLEST
from urteil.broker.wire.primitives import CorruptBatch

# base offset, batch length, magic, attributes of magic 0 and 1, last offset delta of magic 2
_HEAD = struct.Struct(">qi4xBB5xi")
_SMALLEST = (*SMALLEST, HEADER_BYTES)
_SMALLEST_BYTES = min(_SMALLEST)
_PADDING = bytes(_HEAD.size - _SMALLEST_BYTES)
_WINDOW_BYTES = 8192
_CHUNK_BYTES = 1 << 20

BatchPosition = tuple[int, int, int, int]
"""(position, base offset, last offset, size in bytes) of a batch in its file."""


class Batch(NamedTuple):
    """A complete batch and its position in the file; `data` is a view of a larger buffer."""

    position: int
    header: BatchHeader
    data: memoryview


def iter_positions(
    file: File, position: int, end: int, expected: int = 0
) -> Iterator[BatchPosition]:
    """Batches from a batch's `position` to `end`, by heads alone; stops before an incomplete one.

    Compressed messages of magic 0 and 1 have no first offset in their head. It is assumed to be the
    offset after the previous batch, `expected` for the first one.
    """
    window, start = b"", position
    while position + _SMALLEST_BYTES <= end:
        at = position - start
        if at + _HEAD.size > len(window):
            window, start, at = file.read_at(_WINDOW_BYTES, position), position, 0
            if len(window) < _HEAD.size:  # the smallest message, at the end of the file
                window += _PADDING
            if len(window) < _HEAD.size:
                return
        base, length, magic, attributes, delta = _HEAD.unpack_from(window, at)
        size = length + LOG_OVERHEAD_BYTES
        if magic > NEWEST_MAGIC or size < _SMALLEST[magic] or position + size > end:
            return
        if magic == NEWEST_MAGIC:
            last = base + delta
        else:
            last = base
            if attributes & COMPRESSION_MASK:
                base = expected
        yield position, base, last, size
        position, expected = position + size, last + 1


def end_of_batches(data: Buffer, default: int) -> int:
    """The offset after the last complete batch in `data`, `default` if there is none."""
    position, after = 0, default
    while position + _SMALLEST_BYTES <= len(data):
        head = memoryview(data)[position : position + _HEAD.size]
        padded = head if len(head) == _HEAD.size else bytes(head) + _PADDING
        base, length, magic, _, delta = _HEAD.unpack_from(padded)
        position += length + LOG_OVERHEAD_BYTES
        if length <= 0 or position > len(data):
            break
        after = base + (delta if magic == NEWEST_MAGIC else 0) + 1
    return after


def read_batches(file: File, position: int, end: int) -> Iterator[Batch]:
    """Complete batches of any magic from `position` to `end`; the CRC is not checked.

    Stops at the first batch that is incomplete or has an impossible length or an unknown magic.
    Memory is bounded by a chunk and the largest batch in the file.
    """
    chunk, start, length = memoryview(b""), position, 0
    while position < end:
        at = position - start
        header = _header(chunk, at)
        size = header.batch_length + LOG_OVERHEAD_BYTES if header else 0
        if at + size > length or header is None:
            chunk = memoryview(file.read_at(min(max(_CHUNK_BYTES, size), end - position), position))
            start, length, at = position, len(chunk), 0
            header = _header(chunk, 0)
            size = header.size if header else 0
            if length < size <= end - position:
                chunk = memoryview(file.read_at(size, position))
                length = len(chunk)
        if header is None or at + size > length:
            return
        yield Batch(position, header, chunk[at : at + size])
        position += size


def _header(chunk: memoryview, at: int) -> BatchHeader | None:
    try:
        header = read_header(chunk, at)
    except CorruptBatch:
        return None
    return header if header.last_offset_delta >= 0 else None
