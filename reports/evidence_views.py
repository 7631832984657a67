"""The evidence of a run as DuckDB views; damaged parts are left out and named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.verify.evidence import files

NS = 1_000_000_000
MEMORY = "2GB"
_SQL = {
    pa.string(): "VARCHAR",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE",
}


@dataclass(slots=True)
class EvidenceViews:
    """A view for every table of the schema, empty where the run has no rows.

    `lacks` names the parts that could not be read, with the reason.
    """

    db: duckdb.DuckDBPyConnection
    lacks: list[str] = field(default_factory=list)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        selected: list[tuple[Any, ...]] = self.db.execute(query, list(values)).fetchall()
        return selected


@contextmanager
def open_evidence(run_dir: Path) -> Iterator[EvidenceViews]:
    """Open the readable evidence of a run."""
    with duckdb.connect(config={"threads": 2, "memory_limit": MEMORY}) as db:
        evidence_views = EvidenceViews(db)
        views = [_view(evidence_views, run_dir, table) for table in SCHEMAS]
        db.execute("; ".join(views))
        yield evidence_views


def _view(views: EvidenceViews, run_dir: Path, table: str) -> str:
    """The CREATE VIEW statement of a table."""
    readable = []
    for part in files(run_dir, table):
        try:
            views.db.execute(f"SELECT * FROM read_parquet({_text(part)}) LIMIT 0")
            readable.append(part)
        except duckdb.Error as error:
            why = str(error).splitlines()[0]
            views.lacks.append(f"{part.relative_to(run_dir)} cannot be read: {why}")
    kinds = {field.name: _SQL[field.type] for field in SCHEMAS[table]}
    if not readable:
        columns = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in kinds.items())
        return f"CREATE VIEW {table} AS SELECT {columns} WHERE false"
    source = f"read_parquet([{', '.join(map(_text, readable))}], union_by_name = true)"
    there = {row[0] for row in views.rows(f"DESCRIBE SELECT * FROM {source}")}
    columns = ", ".join(
        f'TRY_CAST({_name(name) if name in there else "NULL"} AS {kind}) AS "{name}"'
        for name, kind in kinds.items()
    )
    return f"CREATE VIEW {table} AS SELECT {columns} FROM {source}"


def _text(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _name(column: str) -> str:
    return f'"{column}"'
