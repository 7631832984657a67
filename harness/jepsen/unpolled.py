"""Keys with acknowledged records that nobody polled, where nobody polled."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def unpolled(evidence: Path, ends: Collection[str]) -> Iterator[str]:
    """A sentence for each key, but those whose end was told (`ends`)."""
    covered: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for key, low, high, final in _rows(evidence, "passes", "topic from_offset to_offset final"):
        if final:
            covered[key].append((low, high))
    edges = {key: _edges(stretches) for key, stretches in covered.items()}
    unasked: dict[str, tuple[str, int]] = {}
    for key, offset, value_id in _rows(evidence, "sends", "topic offset value_id"):
        inside = offset is None or key in ends or bisect_right(edges.get(key, ()), offset) % 2
        if not inside:
            unasked[value_id] = key, offset
    for (value_id,) in _rows(evidence, "reads", "value_id") if unasked else ():
        unasked.pop(value_id, None)
    by_key: dict[str, list[int]] = defaultdict(list)
    for key, offset in unasked.values():
        by_key[key].append(offset)
    for key, offsets in by_key.items():
        yield (f"{key}: {len(offsets)} acknowledged records, the first at offset "
               f"{min(offsets)}, lie where nobody polled: they are unseen, or lost (an assign "
               "with :seek-to-beginning? and polls to the end would tell)")  # fmt: skip


def _rows(evidence: Path, table: str, columns: str) -> Iterator[tuple[Any, ...]]:
    names = columns.split()
    with pq.ParquetFile(evidence / table / "part-0.parquet") as file:
        for batch in file.iter_batches(columns=names):
            yield from zip(*(batch[name].to_pylist() for name in names), strict=True)


def _edges(stretches: list[tuple[int, int]]) -> list[int]:
    """Where what any of `stretches` covers begins, ends, begins again: in order."""
    found: list[int] = []
    for begin, end in sorted(stretches):
        if found and begin <= found[-1]:
            found[-1] = max(end, found[-1])
        else:
            found += begin, end
    return found
