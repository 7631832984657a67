"""The evidence of a run as DuckDB views, as far as it can be read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from urteil.harness.history.schema import SCHEMAS
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
class Opened:
    """Every table of the schema is a view, empty where the run has none; `lacks` says which parts
    could not be read, and why."""

    db: duckdb.DuckDBPyConnection
    lacks: list[str] = field(default_factory=list)

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of an answer."""
        found: list[tuple[Any, ...]] = self.db.execute(query, list(values)).fetchall()
        return found


@contextmanager
def opened(run_dir: Path) -> Iterator[Opened]:
    """Open what can be read of a run's evidence."""
    with duckdb.connect(config={"threads": 2, "memory_limit": MEMORY}) as db:
        found = Opened(db)
        views = [_view(found, run_dir, table) for table in SCHEMAS]
        db.execute("; ".join(views))
        yield found


def _view(found: Opened, run_dir: Path, table: str) -> str:
    """The statement that makes a table's view."""
    readable = []
    for part in files(run_dir, table):
        try:
            found.db.execute(f"SELECT * FROM read_parquet({_text(part)}) LIMIT 0")
            readable.append(part)
        except duckdb.Error as error:
            why = str(error).splitlines()[0]
            found.lacks.append(f"{part.relative_to(run_dir)} cannot be read: {why}")
    wanted = {one.name: _SQL[one.type] for one in SCHEMAS[table]}
    if not readable:
        columns = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in wanted.items())
        return f"CREATE VIEW {table} AS SELECT {columns} WHERE false"
    source = f"read_parquet([{', '.join(map(_text, readable))}], union_by_name = true)"
    there = {row[0] for row in found.rows(f"DESCRIBE SELECT * FROM {source}")}
    columns = ", ".join(
        f'TRY_CAST({_name(name) if name in there else "NULL"} AS {kind}) AS "{name}"'
        for name, kind in wanted.items()
    )
    return f"CREATE VIEW {table} AS SELECT {columns} FROM {source}"


def _text(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _name(column: str) -> str:
    return f'"{column}"'
