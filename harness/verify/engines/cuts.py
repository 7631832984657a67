"""Large tables in parts, so that DuckDB answers a query part by part in its memory.

What exceeds the memory is spilled and read again many times: of 10^7 sends that took half of all
processor time. Numbers are cut into ranges, which the statistics of Parquet's row groups show, so
that a part reads little more than its share; text is cut by its hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PART_ROWS = 5_000_000
"""Rows of evidence in a part: grouped, they take up to 2 GB."""


@dataclass(frozen=True)
class Cut:
    """Tables that may be cut alike by a column: the answers to the parts are that to the whole."""

    tables: tuple[str, ...]
    column: str
    ranges: bool = False
    """Whether it holds numbers of which neighbours stand together."""

    def iterate_parts(self, cursor: Any) -> Iterator[None]:
        """Let `cursor` alone see one part after the other under the names of the tables."""
        for condition in self._conditions(cursor):
            for table in self.tables:
                rows = f"SELECT * FROM memory.main.{table} WHERE {condition}"
                cursor.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS {rows}")
            yield

    def _conditions(self, cursor: Any) -> list[str]:
        every = " UNION ALL ".join(f'SELECT "{self.column}" AS cut FROM {t}' for t in self.tables)
        (rows,) = cursor.execute(f"SELECT COUNT(*) FROM ({every})").fetchone()
        n = rows // PART_ROWS + 1
        if not self.ranges:
            return [f'hash("{self.column}") % {n} = {part}' for part in range(n)]
        shares = [part / n for part in range(1, n)]
        (ends,) = cursor.execute(f"SELECT approx_quantile(cut, {shares}) FROM ({every})").fetchone()
        begun = ["TRUE", *(f'"{self.column}" >= {end}' for end in ends or ())]
        ended = [*(f'"{self.column}" < {end}' for end in ends or ()), "TRUE"]
        conditions = [
            f"{beginning} AND {other}" for beginning, other in zip(begun, ended, strict=True)
        ]
        return [*conditions, f'"{self.column}" IS NULL']
