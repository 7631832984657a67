"""The Parquet files of a run's evidence, and its small tables as rows.

Tables that grow with the load (sends, reads, replicas, polls, samples) are read by engines. Here
only their small parts are decoded completely.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.verify.part_cache import (
    is_small,
    once_a_version,
    once_a_version_of_any_size,
)
from urteil.harness.verify.validation import cell_checks

Row = dict[str, Any]


def files(run_dir: Path, table: str) -> list[Path]:
    """The Parquet part files of `table`, in name order; empty when the run has none."""
    folder = run_dir / "evidence" / table
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [folder / name for name in sorted(names) if name.endswith(".parquet")]


_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_KINDS = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_floating)


def castable(have: pa.Field, declared: pa.Field) -> bool:
    """Whether a column can be cast to the declared type: it has the same kind, or no values."""
    have_type, declared_type = have.type, declared.type
    if have_type == declared_type or pa.types.is_null(have_type):
        return True
    if pa.types.is_dictionary(have_type):
        have_type = have_type.value_type
    if pa.types.is_string(declared_type):
        return any(is_(have_type) for is_ in _TEXTS)
    return any(is_(have_type) and is_(declared_type) for is_ in _KINDS)


def rows(run_dir: Path, table: str) -> list[Row]:
    """The valid rows of a small table, with the columns of its schema."""
    rows = [row for part in files(run_dir, table) for row in rows_of(part, table)]
    return cell_checks.drop_invalid(table, rows)


def rows_of(part: Path, table: str) -> list[Row]:
    """All rows of one part file, invalid ones included, with the columns of its schema. The caller
    may change them."""
    return [dict(row) for row in _decode_rows(part, table)]


@once_a_version
def _decode_rows(part: Path, table: str) -> list[Row]:
    names = SCHEMAS[table].names
    read = pq.ParquetFile(part).read(use_threads=False)
    have = set(read.column_names)
    columns = [column_values(read[name]) if name in have else [None] * len(read) for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def column_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column, as `to_pylist` returns them, in a fraction of its time."""
    if column.null_count == len(column):
        return [None] * len(column)
    if pa.types.is_string(column.type) or (
        pa.types.is_integer(column.type) and not column.null_count
    ):
        return list(column.to_numpy(zero_copy_only=False).tolist())
    return list(column.to_pylist())


def samples(run_dir: Path, metrics: Collection[str]) -> Iterator[Row]:
    """The samples of these metrics. Of a large part only these are decoded."""
    for part in files(run_dir, "samples"):
        if is_small(part):
            yield from (row for row in rows_of(part, "samples") if row["metric"] in metrics)
        else:
            yield from pq.read_table(part, filters=[("metric", "in", [*metrics])]).to_pylist()


def batches(part: Path, columns: Sequence[str], rows: int = 65_536) -> Iterator[pa.RecordBatch]:
    """Columns of a part in batches of at most `rows` rows; none if the part lacks a column."""
    if is_small(part):
        table = _read_columns(part, tuple(columns))
        yield from table.to_batches() if table is not None else ()
        return
    file = pq.ParquetFile(part)
    if set(columns) <= set(file.schema_arrow.names):
        yield from file.iter_batches(rows, columns=list(columns))


@once_a_version
def _read_columns(part: Path, columns: tuple[str, ...]) -> pa.Table | None:
    file = pq.ParquetFile(part)
    if not set(columns) <= set(file.schema_arrow.names):
        return None
    return file.read(list(columns), use_threads=False)


def row_count(run_dir: Path, table: str) -> int:
    """The number of rows of `table`, from the files' footers."""
    return sum(int(footer(part).num_rows) for part in files(run_dir, table))


@once_a_version_of_any_size
def footer(part: Path) -> pq.FileMetaData:
    """The metadata at the end of a part file."""
    return pq.read_metadata(part)


def write_rows(path: Path, columns: pa.Schema, table: Iterable[Mapping[str, Any]]) -> None:
    """Write the rows of `table` as one Parquet file in the folder `path`, or replace it."""
    path.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(table), schema=columns), path / "part-0.parquet")


def targets_of(fault: Row) -> list[str]:
    """The nodes or links that a fault targets."""
    text = fault["targets"] or "[]"
    parsed: Any = json.loads(text) if text.startswith("[") else [text]
    return [str(target) for target in parsed]


def links_of(fault: Row) -> list[tuple[str, str]]:
    """The links among the targets of a fault, by source and destination."""
    pairs = [target.partition("->") for target in targets_of(fault)]
    return [(source, destination) for source, arrow, destination in pairs if arrow]


def nodes_of(fault: Row) -> set[str]:
    """The nodes among the targets of a fault, and the ends of its links."""
    return {end for target in targets_of(fault) for end in target.split("->")}
