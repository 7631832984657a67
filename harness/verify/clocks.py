"""Clocks that went back while a client recorded: one sentence a part file of its evidence.

A client counts its calls and takes the time before each, so that within one partition later calls
never have earlier times. Parts are read piece by piece: memory does not follow their length.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from urteil.harness.verify import evidence

ROWS = 131_072
ENOUGH = 4
"""So many calls on either side of a step tell a clock that went back from a few odd rows."""
COUNTED = {"sends": ("partition_intended", "op"), "polls": ("partition", "poll")}
"""Tables, each with the column that tells partitions apart and the one that counts calls."""

Group = tuple[int, ...]


def went_back(run_dir: Path) -> list[str]:
    """A sentence for each part whose calls are not in the order of their times."""
    told = []
    for table, columns in COUNTED.items():
        for part in evidence.files(run_dir, table):
            steps = _steps_back(part, *columns)
            if steps:
                told.append(
                    f"a clock went back {len(steps)} times in {part.relative_to(run_dir)}, "
                    f"by {max(steps) / 1e9:.3f} s at most"
                )
    return told


def _steps_back(part: Path, partition: str, counter: str) -> list[int]:
    """By how many ns times went back, at each step."""
    names = ["client", "topic_id", "session", partition, counter, "invoke_ns"]
    file = pq.ParquetFile(part)
    if not set(names) <= set(file.schema_arrow.names):
        return []
    known: dict[str | None, int] = {}
    last: dict[Group, Any] = {}
    steps: list[int] = []
    for batch in file.iter_batches(ROWS, columns=names):
        rows = batch.filter(batch["invoke_ns"].is_valid())
        for group, calls in _groups(_keys(rows, known, names)):
            before = last.get(group, calls[:0])
            whole = np.concatenate([before, calls[calls[:, 0] > before[:, 0].max(initial=-1)]])
            steps += _back(whole[:, 1])
            last[group] = whole[-2 * ENOUGH :]
    return steps


def _keys(rows: pa.RecordBatch, known: dict[str | None, int], names: list[str]) -> Any:
    """All of `names` for each row as integers, sorted by them."""
    columns = []
    for name in names:
        if pa.types.is_string(rows[name].type):
            text = rows[name].dictionary_encode()
            codes = [known.setdefault(one, len(known)) for one in text.dictionary.to_pylist()]
            columns.append(np.array([*codes, -1])[text.indices.fill_null(len(codes)).to_numpy()])
        else:
            columns.append(rows[name].cast(pa.int64()).fill_null(-1).to_numpy())
    keys = np.stack(columns, axis=1)
    return keys[np.lexsort(keys.T[::-1])]


def _groups(keys: Any) -> Iterator[tuple[Group, Any]]:
    """Counts and times of the calls of each client, session and partition."""
    if not len(keys):
        return
    group = keys[:, :-2]
    cuts = np.flatnonzero(np.any(group[1:] != group[:-1], axis=1)) + 1
    for part in np.split(keys, cuts):
        yield tuple(int(one) for one in part[0, :-2]), part[:, -2:]


def _back(times: Any) -> list[int]:
    """Steps back: ENOUGH calls in a row all later than each of ENOUGH calls in a row after them."""
    if len(times) < 2 * ENOUGH:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(times, ENOUGH)
    reached = np.maximum.accumulate(windows.min(axis=1))[:-ENOUGH]
    by = reached - windows.max(axis=1)[ENOUGH:]
    begins = np.flatnonzero((by > 0) & np.concatenate([[True], by[:-1] <= 0]))
    return [int(by[at:].max()) for at in begins]
