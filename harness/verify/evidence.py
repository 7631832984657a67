"""Where a run's evidence lies, and its small tables as rows.

Tables that grow with the load (sends, reads, replicas, polls, samples) are never loaded here: they
are read by an engine only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from urteil.harness.history.schema import SCHEMAS

Row = dict[str, Any]


def files(run_dir: Path, table: str) -> list[Path]:
    """The Parquet part files of `table`, in name order; empty when the run has none."""
    return sorted((run_dir / "evidence" / table).glob("*.parquet"))


_KINDS = (pa.types.is_integer, pa.types.is_string, pa.types.is_boolean, pa.types.is_floating)


def flaws(run_dir: Path) -> list[str]:
    """Parts that are no whole Parquet file, or lack columns of their table, each in a sentence."""
    told = []
    for table, schema in SCHEMAS.items():
        for part in files(run_dir, table):
            name = part.relative_to(run_dir)
            try:
                have = pq.read_schema(part)
            except (pa.ArrowException, OSError) as error:
                text = " ".join(str(error).split())[:200]
                told.append(f"{name} is no whole Parquet file ({text}): collect the evidence again")
                continue
            lost = [column.name for column in schema if not _has(have, column)]
            if lost:
                told.append(f"{name} has no {', '.join(lost)} as this version of Urteil writes it")
    return told


def _has(have: pa.Schema, column: pa.Field) -> bool:
    if column.name not in have.names:
        return False
    kind = have.field(column.name).type
    return bool(kind == column.type or any(is_(kind) and is_(column.type) for is_ in _KINDS))


def rows(run_dir: Path, table: str) -> list[Row]:
    """All rows of a small table, with the columns of its schema."""
    found: list[Row] = []
    for part in files(run_dir, table):
        found.extend(pq.read_table(part).to_pylist())
    names = SCHEMAS[table].names
    return [{name: row.get(name) for name in names} for row in found]


def row_count(run_dir: Path, table: str) -> int:
    """How many rows `table` has, read from the files' footers."""
    return sum(int(pq.read_metadata(part).num_rows) for part in files(run_dir, table))


def write_rows(path: Path, columns: pa.Schema, table: Iterable[Mapping[str, Any]]) -> None:
    """Write `table` as one Parquet file of a folder `path`, replacing what stood there."""
    path.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(table), schema=columns), path / "part-0.parquet")
