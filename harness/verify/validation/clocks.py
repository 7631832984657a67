"""Clocks that went back or leapt during a run: one sentence for each part file of its evidence.

A client counts its calls and reads the clock before each, so that within one partition later calls
never have earlier times (`CallOrder` in the declarations). ZooKeeper counts its transactions
(zxid). Only states may be older than the run: the cluster may have existed before it. Parts are
read batch by batch, or only their statistics: memory does not follow their length.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from urteil.harness.evidence.schema import TABLES
from urteil.harness.host_clocks import BOUND, MOST_OFFSET_NS, WALL_OFFSET
from urteil.harness.scenario import IMPORTED, RunFacts
from urteil.harness.verify import evidence
from urteil.harness.verify.part_cache import once_a_version, once_a_version_of_any_size

ROWS = 131_072
ENOUGH = 4
"""Calls on either side of a step that distinguish a clock that went back from a few odd rows."""
SLACK_NS = 60_000_000_000
"""A time further outside of the run is that of a clock that leapt."""
SKEW_NS = 1_000_000_000
"""ZooKeeper's times may go back by so much, if another server with its own clock leads it."""

Group = tuple[int, ...]


def clock_problems(run_dir: Path, facts: RunFacts) -> list[str]:
    """A sentence for each clock that cannot be compared with the others."""
    return [
        *_several_boots(run_dir, facts),
        *backward_calls(run_dir),
        *_backward_states(run_dir),
        *_leaps(run_dir, facts),
        *_distant_hosts(run_dir),
    ]


def _several_boots(run_dir: Path, facts: RunFacts) -> list[str]:
    """Clients of several boots: their monotonic clocks have nothing in common."""
    known = {facts.boot_id}
    for part in evidence.files(run_dir, "clients"):
        for batch in evidence.batches(part, ["boot_id"]):
            known.update(pc.unique(batch["boot_id"]).to_pylist())
    known -= {None, ""}
    return [f"times of {len(known)} boots cannot be compared"] if len(known) > 1 else []


def _distant_hosts(run_dir: Path) -> list[str]:
    """A sentence for each host whose wall clock was too far from the lab's, or may have been."""
    offsets: dict[tuple[str, int], dict[str, float]] = {}
    for row in evidence.samples(run_dir, (WALL_OFFSET, BOUND)):
        if None not in (row["source"], row["at_ns"], row["value"]):
            offsets.setdefault((row["source"], row["at_ns"]), {})[row["metric"]] = row["value"]
    worst: dict[str, tuple[float, float, float]] = {}
    for (host, _), values in offsets.items():
        if len(values) == 2:
            offset_s, bound_s = values[WALL_OFFSET], values[BOUND]
            worst[host] = max(
                worst.get(host, (0.0, 0.0, 0.0)), (abs(offset_s) + bound_s, offset_s, bound_s)
            )
    return [
        f"the clock of the host {host} differed from the lab's by {1000 * offset_s:+.1f} ms "
        f"(± {1000 * bound_s:.1f} ms): what it stamped cannot be compared (evidence/samples)"
        for host, (most_s, offset_s, bound_s) in sorted(worst.items())
        if most_s * 1e9 > MOST_OFFSET_NS
    ]


def _backward_states(run_dir: Path) -> list[str]:
    """A sentence if later versions of a znode have earlier times."""
    rows = evidence.rows(run_dir, "states")
    known = [row for row in rows if None not in (row["path"], row["zxid"], row["at_ns"])]
    latest: dict[tuple[str, str | None], int] = {}
    back_ns = 0
    for row in sorted(known, key=lambda row: int(row["zxid"])):
        znode = row["path"], row["topic_id"]
        at_ns = latest.setdefault(znode, row["at_ns"])
        back_ns = max(back_ns, at_ns - row["at_ns"])
        latest[znode] = max(at_ns, row["at_ns"])
    if back_ns <= SKEW_NS:
        return []
    return [f"ZooKeeper's clock went back by {back_ns / 1e9:.3f} s (evidence/states)"]


def _leaps(run_dir: Path, facts: RunFacts) -> list[str]:
    """A sentence for each part and column with a time that is not of this run."""
    phases = {phase.name for phase in facts.phases}
    if facts.runtime == IMPORTED or "final" not in phases:
        return []
    begin_ns = min(phase.begin_ns for phase in facts.phases) - SLACK_NS
    end_ns = max(phase.end_ns for phase in facts.phases) + SLACK_NS
    return [
        f"{part.relative_to(run_dir)}: {column.name} is {(by + SLACK_NS) / 1e9:.0f} s {where} the "
        "run: a clock leapt"
        for table in TABLES.values()
        for column in table.columns
        if column.is_time
        for part in evidence.files(run_dir, table.name)
        for low, high in _spans(part, column.name)
        for by, where in ((begin_ns - low, "before"), (high - end_ns, "after"))
        if by > 0 and (table.name, where) != ("states", "before")
    ]


@once_a_version_of_any_size
def _spans(part: Path, column: str) -> list[tuple[int, int]]:
    """The least and the greatest value of a column, if the part has statistics."""
    metadata = evidence.footer(part)
    at = metadata.schema.names.index(column) if column in metadata.schema.names else None
    groups = (
        []
        if at is None
        else [metadata.row_group(n).column(at) for n in range(metadata.num_row_groups)]
    )
    stored = (chunk.statistics for chunk in groups)
    known = [bounds for bounds in stored if bounds and bounds.has_min_max]
    if not known or not all(isinstance(bounds.min, int) for bounds in known):
        return []
    return [(min(bounds.min for bounds in known), max(bounds.max for bounds in known))]


def backward_calls(run_dir: Path) -> list[str]:
    """A sentence for each part whose calls are not in the order of their times."""
    sentences = []
    for table, calls in ((table.name, table.calls) for table in TABLES.values() if table.calls):
        for part in evidence.files(run_dir, table):
            if steps := _steps_back(part, *calls.names):
                sentences.append(
                    f"a clock went back {len(steps)} times in {part.relative_to(run_dir)}, "
                    f"by {max(steps) / 1e9:.3f} s at most"
                )
    return sentences


@once_a_version
def _steps_back(part: Path, *columns: str) -> list[int]:
    """By how many ns times went back, at each step. The last two columns are count and time."""
    names = [*columns]
    file = pq.ParquetFile(part)
    if not set(names) <= set(file.schema_arrow.names) or _in_order(file, names[-2:]):
        return []
    known: dict[str | None, int] = {}
    last: dict[Group, Any] = {}
    steps: list[int] = []
    for batch in file.iter_batches(ROWS, columns=names):
        rows = batch.filter(batch[names[-1]].is_valid())
        for group, calls in _groups(_keys(rows, known, names)):
            before = last.get(group, calls[:0])
            later = calls[calls[:, 0] > before[:, 0].max(initial=-1)]
            joined = np.concatenate([before, later])
            steps += _backward_steps(joined[:, 1])
            last[group] = joined[-2 * ENOUGH :]
    return steps


def _in_order(file: pq.ParquetFile, names: list[str]) -> bool:
    """Whether all columns grow from row to row, as in a part of a single client."""
    last = None
    for batch in file.iter_batches(ROWS, columns=names):
        if any(column.null_count for column in batch.columns) or not len(batch):
            return False
        values = np.stack([column.to_numpy() for column in batch.columns])
        joined = values if last is None else np.hstack([last, values])
        if np.any(joined[:, 1:] < joined[:, :-1]):
            return False
        last = values[:, -1:]
    return True


def _keys(rows: pa.RecordBatch, known: dict[str | None, int], names: list[str]) -> Any:
    """All of `names` for each row as integers, sorted by them."""
    columns = []
    for name in names:
        if pa.types.is_string(rows[name].type):
            text = rows[name].dictionary_encode()
            codes = [known.setdefault(word, len(known)) for word in text.dictionary.to_pylist()]
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
        yield tuple(int(key) for key in part[0, :-2]), part[:, -2:]


def _backward_steps(times: Any) -> list[int]:
    """Steps back: ENOUGH calls in a row all later than each of ENOUGH calls in a row after them."""
    if len(times) < 2 * ENOUGH:
        return []
    windows = np.lib.stride_tricks.sliding_window_view(times, ENOUGH)
    reached = np.maximum.accumulate(windows.min(axis=1))[:-ENOUGH]
    by = reached - windows.max(axis=1)[ENOUGH:]
    begins = np.flatnonzero((by > 0) & np.concatenate([[True], by[:-1] <= 0]))
    return [int(by[at:].max()) for at in begins]
