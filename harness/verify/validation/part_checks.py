"""Checks of the columns of one part file against their declarations.

Impossible numbers, unknown words and missing values are damage of the evidence: the verdict is
UNKNOWN, and the cluster is not accused. Footers answer most questions; without statistics the
column is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from urteil.harness.evidence.columns import Column
from urteil.harness.evidence.schema import SCHEMAS, TABLES
from urteil.harness.verify import evidence
from urteil.harness.verify.part_cache import once_a_version
from urteil.harness.verify.validation.cell_checks import AGAIN


@once_a_version
def column_problems(part: Path, table: str) -> list[str]:
    """A sentence for each way in which a part's columns differ from their declarations."""
    file = pq.ParquetFile(part)
    have, schema = file.schema_arrow, SCHEMAS[table]
    flat = {column.path for column in file.schema}
    declared = TABLES[table].columns
    known = [column for column in declared if column.name in have.names]
    present = [column for column in known if column.name in flat]
    problems = []
    if lost := [c.name for c in declared if c.name not in have.names and not c.may_be_missing]:
        problems.append(f"it has no {', '.join(lost)} as this version of Urteil writes it")
    problems += [
        f"{column.name} is {have.field(column.name).type}, should be {column.type}"
        for column in known
        if not evidence.castable(have.field(column.name), schema.field(column.name))
    ]
    if numbers := _impossible_numbers(file, known):
        examples = ", ".join(map(str, numbers.values()))
        problems.append(
            f"{', '.join(numbers)} with impossible numbers ({examples}); they count as unknown: "
            f"{AGAIN}"
        )
    if words := _unknown_words(file, present):
        examples = ", ".join(f"{word[:60]!r}" for word in words.values())
        problems.append(f"{', '.join(words)} with unknown words ({examples})")
    if missing := _missing_values(file, present):
        problems.append(f"it has rows without {', '.join(missing)}: {AGAIN}")
    return problems


def _impossible_numbers(part: pq.ParquetFile, columns: list[Column]) -> dict[str, int]:
    """Columns with numbers out of bounds, whatever their width in the part, each with one."""
    examples = {}
    for column in columns:
        limits = column.limits
        if limits and pa.types.is_integer(part.schema_arrow.field(column.name).type):
            bounds = {*extremes(part, column.name), 0}
            if min(bounds) < limits[0] or max(bounds) > limits[1]:
                examples[column.name] = min(bounds) if min(bounds) < limits[0] else max(bounds)
    return examples


def _unknown_words(part: pq.ParquetFile, columns: list[Column]) -> dict[str, str]:
    """Columns with words that are not declared, each with the first."""
    checked = {
        column.name: column.words
        for column in columns
        if column.words and count_nulls(part, column.name) < part.metadata.num_rows
    }
    examples: dict[str, str] = {}
    for group in range(part.num_row_groups if checked else 0):
        rows = part.read_row_group(group, [*checked])
        for name, words in checked.items():
            others = {str(word) for word in pc.unique(rows[name]).to_pylist() if word is not None}
            if others - words:
                examples[name] = min(others - words)
    return examples


def _missing_values(part: pq.ParquetFile, columns: list[Column]) -> list[str]:
    """Columns with nulls that no row may have, or that only some rows of the part have."""
    required = [c.name for c in columns if c.required is True and count_nulls(part, c.name)]
    uniform = (c.name for c in columns if c.uniform)
    return required + [
        name for name in uniform if 0 < count_nulls(part, name) < part.metadata.num_rows
    ]


def count_nulls(part: pq.ParquetFile, name: str) -> int:
    """The number of nulls in a column."""
    nulls = 0
    for group in range(part.num_row_groups):
        statistics = part.metadata.row_group(group).column(_position(part, name)).statistics
        if statistics is not None and statistics.has_null_count:
            nulls += statistics.null_count
        else:
            nulls += part.read_row_group(group, [name]).column(0).null_count
    return nulls


def extremes(part: pq.ParquetFile, name: str) -> set[Any]:
    """The least and the greatest values of a column's row groups; empty without such a column."""
    if name not in {column.path for column in part.schema}:
        return set()
    values: set[Any] = set()
    for group in range(part.num_row_groups):
        statistics = part.metadata.row_group(group).column(_position(part, name)).statistics
        if statistics is not None and statistics.has_min_max:
            values |= {statistics.min, statistics.max}
        else:
            low_high = pc.min_max(part.read_row_group(group, [name]).column(0)).as_py()
            values |= {*low_high.values()}
    return values - {None}


def _position(part: pq.ParquetFile, name: str) -> int:
    return next(n for n in range(len(part.schema)) if part.schema.column(n).path == name)


def null_impossible(values: pa.Array, column: Column) -> pa.Array:
    """`values` with null for each number that is out of bounds."""
    limits = column.limits
    if limits is None or not pa.types.is_integer(values.type):
        return values
    possible = pc.and_(pc.less_equal(values, limits[1]), pc.greater_equal(values, limits[0]))
    return pc.if_else(possible, values, pa.scalar(None, values.type))


def foreign_rows(run_dir: Path, run: str) -> dict[str, str]:
    """Tables with rows of several runs, each with the sentence."""
    sentences = {}
    for table in TABLES:
        runs = {name for part in evidence.files(run_dir, table) for name in _runs(part)}
        if len(runs) > 1:
            others = ", ".join(sorted(map(str, runs - {run})))
            sentences[table] = (
                f"evidence/{table}: rows of several runs, of {others} among them: {AGAIN}"
            )
    return sentences


@once_a_version
def _runs(part: Path) -> frozenset[str]:
    """The first and the last name of a run in a part, in the order of text."""
    return frozenset(extremes(pq.ParquetFile(part), "run"))
