"""A fast scan of the records of a batch: only their keys and positions, which cleaning needs.

It takes a tenth of the time of `iter_records`. The layout is that of `DefaultRecord` (KIP-98).
"""

from __future__ import annotations

from dataclasses import dataclass

from urteil.broker.wire.primitives import CorruptBatch


@dataclass(frozen=True, slots=True)
class ScannedRecords:
    """One entry for each record, in order; record `n` is `body[ends[n]:ends[n + 1]]`."""

    keys: list[bytes | None]
    offset_deltas: list[int]
    ends: list[int]
    tombstones: list[int]
    """The numbers of records without a value."""


def scan_records(body: bytes, count: int) -> ScannedRecords:
    """Scan `count` records. Raises CorruptBatch if `body` does not consist of so many."""
    try:
        scanned = _scan(body, count)
    except IndexError as error:
        raise CorruptBatch("truncated record") from error
    if scanned.ends[-1] != len(body):
        raise CorruptBatch(f"{len(body) - scanned.ends[-1]} bytes after the last record")
    return scanned


def _scan(body: bytes, count: int) -> ScannedRecords:
    keys: list[bytes | None] = []
    deltas: list[int] = []
    ends = [0]
    tombstones: list[int] = []
    pos = 0
    # varints are decoded inline: a call for each would double the time of a cleaning
    for number in range(count):
        size = body[pos]
        pos += 1
        if size > 127:
            byte = body[pos]
            pos += 1
            if byte > 127:
                size, pos = _read_varint_tail(body, pos, (size & 127) | (byte & 127) << 7, 14)
            else:
                size += (byte << 7) - 128
        stop = pos + (size >> 1)
        pos += 1  # attributes
        while body[pos] > 127:  # timestamp
            pos += 1
        delta = body[pos + 1]
        pos += 2
        if delta > 127:
            delta, pos = _read_varint_tail(body, pos, delta & 127, 7)
        length = body[pos]
        pos += 1
        if length == 1:
            keys.append(None)
        else:
            if length > 127:
                length, pos = _read_varint_tail(body, pos, length & 127, 7)
            key_end = pos + (length >> 1)
            keys.append(body[pos:key_end])
            pos = key_end
        if (size | delta | (length if length != 1 else 0)) & 1 or pos >= stop:
            raise CorruptBatch("the fields of a record do not match its size")
        deltas.append(delta >> 1)
        if body[pos] == 1:
            tombstones.append(number)
        pos = stop
        ends.append(pos)
    return ScannedRecords(keys, deltas, ends, tombstones)


def _read_varint_tail(body: bytes, pos: int, value: int, shift: int) -> tuple[int, int]:
    """The value of a longer varint, not yet zigzag-decoded, and its end."""
    while True:
        byte = body[pos]
        pos += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, pos
        shift += 7
        if shift > 35:
            raise CorruptBatch("a varint is too long")
