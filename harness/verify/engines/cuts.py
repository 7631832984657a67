"""Splits large tables into parts, so that DuckDB runs a query part by part within its memory.

Rows that exceed the memory are spilled and read again many times: with 10^7 sends that took half of
all processor time. Columns of numbers are split into ranges: by the statistics of Parquet's row
groups a part reads little more than its own rows. Columns of text are split by their hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PART_ROWS = 5_000_000
"""Rows of evidence in a part. Their aggregation takes up to 2 GB."""


@dataclass(frozen=True)
class Cut:
    """Tables that can be split by the same column: the results of the parts together are the result
    for all rows."""

    tables: tuple[str, ...]
    column: str
    ranges: bool = False
    """Whether it has numbers, and rows with close numbers are stored together."""

    def iterate_parts(self, cursor: Any) -> Iterator[None]:
        """Replace the tables by one part after the other, in the session of `cursor` only."""
        for condition in self._conditions(cursor):
            for table in self.tables:
                rows = f"SELECT * FROM memory.main.{table} WHERE {condition}"
                cursor.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS {rows}")
            yield

    def _conditions(self, cursor: Any) -> list[str]:
        values = " UNION ALL ".join(f'SELECT "{self.column}" AS cut FROM {t}' for t in self.tables)
        (rows,) = cursor.execute(f"SELECT COUNT(*) FROM ({values})").fetchone()
        n = rows // PART_ROWS + 1
        if not self.ranges:
            return [f'hash("{self.column}") % {n} = {part}' for part in range(n)]
        shares = [part / n for part in range(1, n)]
        (ends,) = cursor.execute(
            f"SELECT approx_quantile(cut, {shares}) FROM ({values})"
        ).fetchone()
        lower_bounds = ["TRUE", *(f'"{self.column}" >= {end}' for end in ends or ())]
        upper_bounds = [*(f'"{self.column}" < {end}' for end in ends or ()), "TRUE"]
        conditions = [
            f"{lower} AND {upper}" for lower, upper in zip(lower_bounds, upper_bounds, strict=True)
        ]
        return [*conditions, f'"{self.column}" IS NULL']
