"""Clocks that went back while a client recorded: one sentence a part file of its evidence.

A client counts its calls and takes the time before each, so that within one partition a later call
never has an earlier time. Parts are read piece by piece: memory does not follow their length.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from urteil.harness.verify import evidence

ROWS = 131_072
COUNTED = {"sends": ("partition_intended", "op"), "polls": ("partition", "poll")}
"""Tables, each with the column that tells partitions apart and the one that counts calls."""

_Last = dict[tuple[int, int, int], tuple[int, int]]


def went_back(run_dir: Path) -> list[str]:
    """A sentence for each part whose calls are not in the order of their times."""
    told = []
    for table, columns in COUNTED.items():
        for part in evidence.files(run_dir, table):
            count, most_ns = _steps_back(part, *columns)
            if count:
                told.append(
                    f"a clock went back {count} times in {part.relative_to(run_dir)}, "
                    f"by {most_ns / 1e9:.3f} s at most"
                )
    return told


def _steps_back(part: Path, partition: str, counter: str) -> tuple[int, int]:
    """How many calls have an earlier time than the one before, and the longest way back in ns."""
    names = ["client", "session", partition, counter, "invoke_ns"]
    file = pq.ParquetFile(part)
    if not set(names) <= set(file.schema_arrow.names):
        return 0, 0
    clients: dict[str | None, int] = {}
    last: _Last = {}
    back = [np.zeros(0, dtype=np.int64)]
    for batch in file.iter_batches(ROWS, columns=names):
        rows = batch.filter(batch["invoke_ns"].is_valid())
        if rows.num_rows:
            back.append(_back(_keys(rows, clients, names), last))
    steps = np.concatenate(back)
    return len(steps), int(steps.max(initial=0))


def _keys(rows: pa.RecordBatch, clients: dict[str | None, int], names: list[str]) -> Any:
    """Client, session, partition, count and time of each row as integers, sorted by them."""
    named = rows["client"].dictionary_encode()
    codes = [clients.setdefault(one, len(clients)) for one in named.dictionary.to_pylist()]
    who = np.array([*codes, -1])[named.indices.fill_null(len(codes)).to_numpy()]
    rest = [rows[name].cast(pa.int64()).fill_null(-1).to_numpy() for name in names[1:]]
    keys = np.stack([who, *rest], axis=1)
    return keys[np.lexsort(keys.T[::-1])]


def _back(keys: Any, last: _Last) -> Any:
    """By how much times went back from each call to the next of its group, where they did.

    `last` carries each group's latest call from one piece to the next; one that was counted before
    it and comes after it was answered late, and is compared within its own piece alone.
    """
    group, when = keys[:, :3], keys[:, 4]
    begins = np.flatnonzero(np.any(group[1:] != group[:-1], axis=1)) + 1
    before = np.concatenate([when[:1], when[:-1]])
    for at in [0, *begins]:
        known = last.get(tuple(group[at]))
        before[at] = known[1] if known and known[0] < keys[at, 3] else when[at]
    for at in [*(begins - 1), len(keys) - 1]:
        last[tuple(group[at])] = max(last.get(tuple(group[at]), (-1, 0)), tuple(keys[at, 3:]))
    return (before - when)[before > when]
