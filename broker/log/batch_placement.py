"""Offsets and segments for the batches of one append."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from urteil.broker.log.batch_checks import Batches
from urteil.broker.log.segment import MAX_RELATIVE_OFFSET, PlacedBatch
from urteil.broker.log.storage import Buffer

_PREFIX = struct.Struct(">qii")

PREFIX_BYTES = _PREFIX.size
"""Base offset, length and leader epoch of a batch: the bytes before those that the CRC covers."""


def place_batches(
    batches: Batches, base_offset: int, leader_epoch: int
) -> tuple[list[Buffer], list[PlacedBatch]]:
    """Buffers to write, with consecutive offsets and the epoch, and where each batch ends.

    The caller's buffer is not changed: each batch gets a new prefix, which its CRC does not cover.
    """
    offset = base_offset
    buffers: list[Buffer] = []
    placed: list[PlacedBatch] = []
    for header, batch in batches:
        buffers.append(_PREFIX.pack(offset, header.batch_length, leader_epoch))
        buffers.append(batch[PREFIX_BYTES:])
        last_offset = offset + header.last_offset_delta
        placed.append((last_offset, header.max_timestamp, header.size))
        offset = last_offset + 1
    return buffers, placed


def split_by_segment(batches: Batches, active_bytes: int, segment_bytes: int) -> Iterator[Batches]:
    """Split fetched batches into runs that each fit one segment, by size and by offset.

    The first run fits behind the `active_bytes` of the active segment.
    """
    room = segment_bytes - active_bytes
    run: Batches = []
    for header, batch in batches:
        is_too_far = run and header.last_offset - run[0][0].base_offset > MAX_RELATIVE_OFFSET
        if run and (header.size > room or is_too_far):
            yield run
            run, room = [], segment_bytes
        run.append((header, batch))
        room -= header.size
    if run:
        yield run
