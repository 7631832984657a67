"""Evidence tables written row group by row group."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from urteil.harness.evidence.schema import SCHEMAS

GROUP = 1 << 16
"""Rows that are kept in memory before they are written."""
Cells = tuple[Any, ...]


class Table:
    """One table of a run's evidence. A row has the cells of `columns`, in that order.

    `constant` columns have the same value in every row; all others are null.
    """

    def __init__(self, evidence: Path, name: str, columns: str, constant: dict[str, Any]) -> None:
        self.schema = SCHEMAS[name]
        self.rows = 0
        self._names = columns.split()
        self._constant = constant
        self._pending: list[Cells] = []
        folder = evidence / name
        folder.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(folder / "part-0.parquet", self.schema)

    def add(self, row: Cells) -> None:
        self._pending.append(row)
        if len(self._pending) == GROUP:
            self._flush()

    def close(self) -> None:
        """Write the rows in memory, which completes the table."""
        if self._pending:
            self._flush()
        self._writer.close()

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch.select(self.schema.names))

    def _flush(self) -> None:
        columns = dict(zip(self._names, zip(*self._pending, strict=True), strict=True))
        count = len(self._pending)
        self._pending.clear()
        self.rows += count
        extra = [
            pa.field(name, pa.int64()) for name in self._names if name not in self.schema.names
        ]
        fields = [*self.schema, *extra]
        arrays = [self._array(field, columns, count) for field in fields]
        self.write(pa.record_batch(arrays, schema=pa.schema(fields)))

    def _array(self, field: pa.Field, columns: dict[str, Cells], count: int) -> pa.Array:
        if field.name in columns:
            return pa.array(columns[field.name], field.type)
        if field.name in self._constant:
            return pa.repeat(pa.scalar(self._constant[field.name], field.type), count)
        return pa.nulls(count, field.type)


class SortedTable(Table):
    """A table that is sorted by some columns when it closes. These need not be its own."""

    def __init__(
        self, evidence: Path, name: str, columns: str, constant: dict[str, Any], by: str
    ) -> None:
        super().__init__(evidence, name, columns, constant)
        self._by = [(column, "ascending") for column in by.split()]
        self._batches: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def close(self) -> None:
        if self._pending:
            self._flush()
        if self._batches:
            rows = pa.Table.from_batches(self._batches).sort_by(self._by)
            self._writer.write_table(rows.select(self.schema.names))
        self._writer.close()
