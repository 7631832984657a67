"""Writes evidence tables as Parquet parts, by row groups. Each part is written atomically."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from urteil.harness.evidence.schema import SCHEMAS

ROW_GROUP = 32_768


class PartWriter:
    """One part file of one table. Rows map columns to values; absent ones are null.

    Memory holds one row group. The part gets its name when it is closed; without a row there is no
    part.
    """

    def __init__(self, evidence: Path, table: str, part: str, run: str) -> None:
        self._schema = SCHEMAS[table]
        self._final = evidence / table / f"{part}.parquet"
        self._partial = self._final.with_name(f".{part}.parquet.part")
        self._run = run
        self._rows: list[Mapping[str, Any]] = []
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0

    def add(self, row: Mapping[str, Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= ROW_GROUP:
            self._flush()

    def close(self) -> None:
        """Write the remaining rows and rename the part to its name."""
        if self._rows:
            self._flush()
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._partial.replace(self._final)

    def abandon(self) -> None:
        """Remove everything that was written."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._partial.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._writer is None:
            self._final.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._partial, self._schema, compression="zstd")
        rows = self._rows
        columns = [pa.array([self._run] * len(rows), pa.string())]
        for field in list(self._schema)[1:]:
            name = field.name
            columns.append(pa.array([row.get(name) for row in rows], field.type))
        self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema))
        self.rows += len(rows)
        self._rows = []


class Evidence:
    """The parts that one source of evidence (a journal, a broker's disk) writes, by table.

    As a context manager it closes all parts, or removes them after an exception.
    """

    def __init__(self, run_dir: Path, source: str, run: str) -> None:
        self._folder = run_dir / "evidence"
        self._source = source
        self._run = run
        self._parts: dict[str, PartWriter] = {}

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        part = self._parts.get(table)
        if part is None:
            part = PartWriter(self._folder, table, self._source, self._run)
            self._parts[table] = part
        part.add(row)

    def counts(self) -> dict[str, int]:
        """Rows of each table; complete once closed."""
        return {table: part.rows for table, part in self._parts.items()}

    def rows_by_file(self) -> dict[str, int]:
        """Rows of each part file by its name within the run; complete once closed."""
        return {
            f"evidence/{table}/{self._source}.parquet": part.rows
            for table, part in self._parts.items()
            if part.rows
        }

    def __enter__(self) -> Evidence:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for part in self._parts.values():
            if kind is None:
                part.close()
            else:
                part.abandon()


def remove_parts(run_dir: Path, keep: frozenset[str] = frozenset()) -> None:
    """Remove the parts of an earlier collection, except those of the tables to `keep`."""
    for table in SCHEMAS.keys() - keep:
        for part in (run_dir / "evidence" / table).glob("*.parquet*"):
            part.unlink()
        for part in (run_dir / "evidence" / table).glob(".*.part"):
            part.unlink()


def write_empty_parts(run_dir: Path) -> None:
    """Write a part without rows for every table without a part, so that each can be read."""
    for table, schema in SCHEMAS.items():
        folder = run_dir / "evidence" / table
        folder.mkdir(parents=True, exist_ok=True)
        if not any(folder.glob("*.parquet")):
            partial = folder / ".empty.parquet.part"
            pq.write_table(schema.empty_table(), partial)
            partial.replace(folder / "empty.parquet")
