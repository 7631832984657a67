"""The indexes of a segment, entry by entry, each with the batch that it points at.

Formats: Kafka's `OffsetIndex` (relative offset, position: 8 bytes), `TimeIndex` (time, relative
offset: 12 bytes) and `TransactionIndex` (version, producer, first, last, last stable offset: 34
bytes). Zeros at an index's end are preallocated space.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Row = dict[str, Any]

_OFFSET, _TIME, _TXN = struct.Struct(">ii"), struct.Struct(">qi"), struct.Struct(">hqqqq")
INDEXES = {"offset": (".index", _OFFSET), "time": (".timeindex", _TIME), "txn": (".txnindex", _TXN)}


@dataclass(slots=True)
class Layout:
    """The batches of a segment: columns in file order, and its control batches by offset."""

    positions: list[int] = field(default_factory=list)
    bases: list[int] = field(default_factory=list)
    lasts: list[int] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    highest: list[int] = field(default_factory=list)
    controls: dict[int, str | None] = field(default_factory=dict)
    end: int = 0

    def add(self, size: int, base: int, last: int, max_timestamp_ms: int) -> None:
        """Add the next batch. `highest` keeps the highest time before it."""
        before = max(self.highest[-1], self.times[-1]) if self.times else -1
        for column, value in (
            (self.positions, self.end),
            (self.bases, base),
            (self.lasts, last),
            (self.times, max_timestamp_ms),
            (self.highest, before),
        ):
            column.append(value)
        self.end += size

    def starting_at(self, position: int) -> int | None:
        """The number of the batch that begins at this position of the file."""
        n = bisect.bisect_left(self.positions, position)
        return n if n < len(self.positions) and self.positions[n] == position else None

    def find_batch(self, offset: int) -> int | None:
        """The number of the batch whose range contains this offset."""
        n = bisect.bisect_left(self.lasts, offset)
        return n if n < len(self.lasts) and self.bases[n] <= offset else None


def read_indexes(segment: Path, layout: Layout) -> Iterator[Row]:
    """Rows of `indexes` of one segment's three files, without the columns of the log."""
    for kind, (suffix, _) in INDEXES.items():
        path = segment.with_suffix(suffix)
        data = path.read_bytes() if path.exists() else b""
        yield from index_rows(int(segment.stem), kind, data, layout)


def index_rows(base: int, kind: str, data: bytes, layout: Layout) -> Iterator[Row]:
    """Rows of `indexes` of one file, whose segment begins at `base`."""
    entry = INDEXES[kind][1]
    used = len(data.rstrip(b"\0"))
    count = -(-used // entry.size)
    whole = data[: count * entry.size].ljust(count * entry.size, b"\0")
    for number, values in enumerate(entry.iter_unpack(whole)):
        common = {"segment_base": base, "kind": kind, "entry": number}
        yield common | _entry(kind, base, values, layout)


def _entry(kind: str, base: int, values: tuple[Any, ...], layout: Layout) -> Row:
    if kind == "offset":
        row = {"offset": base + values[0], "position": values[1]}
        return row | _columns_of_batch(layout, layout.starting_at(values[1]))
    if kind == "time":
        row = {"offset": base + values[1], "timestamp_ms": values[0]}
        return row | _columns_of_batch(layout, layout.find_batch(base + values[1]))
    row = {"offset": values[3], "producer_id": values[1]}
    control = layout.controls.get(values[3])
    return row | _columns_of_batch(layout, layout.find_batch(values[3])) | {"there": control}


def _columns_of_batch(layout: Layout, number: int | None) -> Row:
    if number is None:
        return {}
    return {
        "there": "batch",
        "there_base": layout.bases[number],
        "there_last": layout.lasts[number],
        "there_timestamp_ms": layout.times[number],
        "before_timestamp_ms": layout.highest[number],
    }
