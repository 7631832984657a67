"""Whole numbers that nothing can have been, as the footers of the files tell: damage, so nobody is
accused of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FREE = frozenset({"timestamp_ms", "there_timestamp_ms", "before_timestamp_ms", "sequence"})
"""Columns that clients fill as they like, or count around the end of their type."""


def limit(column: pa.Field) -> int | None:
    """The end of a column's type, which no number of it reaches; None where anything goes."""
    if column.name in FREE or not pa.types.is_integer(column.type):
        return None
    return int((1 << (column.type.bit_width - 1)) - 1)


def wild(part: pq.ParquetFile, ours: pa.Schema) -> list[str]:
    """Columns of `ours` that have numbers out of bounds in `part`, whatever their width there."""
    have = part.schema_arrow
    at = {part.schema.column(n).path: n for n in range(len(part.schema))}
    bounds = {
        column.name: limit(column)
        for column in ours
        if column.name in have.names and pa.types.is_integer(have.field(column.name).type)
    }
    return [
        name for name, far in bounds.items() if far is not None and _reach(part, at[name]) >= far
    ]


def _reach(part: pq.ParquetFile, column: int) -> int:
    """The largest magnitude in a column; where the footer does not tell, of what is read."""
    found = 0
    for group in range(part.num_row_groups):
        told = part.metadata.row_group(group).column(column).statistics
        if told is not None and told.has_min_max:
            low, high = told.min, told.max
        else:
            name = part.schema.column(column).name
            ends = pc.min_max(part.read_row_group(group, [name]).column(0)).as_py()
            low, high = ends["min"] or 0, ends["max"] or 0
        found = max(found, high, -low)
    return found


def tamed(values: pa.Array, ours: pa.Field) -> pa.Array:
    """`values` with null for each that is out of bounds."""
    far = limit(ours)
    if far is None or not pa.types.is_integer(values.type):
        return values
    sane = pc.and_(pc.less(values, far), pc.greater(values, -far))
    return pc.if_else(sane, values, pa.scalar(None, values.type))
