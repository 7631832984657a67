"""The declarations of evidence agree with themselves, and validation follows each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.verify.example_runs import healthy
from urteil.harness.evidence.columns import Column, When
from urteil.harness.evidence.schema import SCHEMAS, TABLES
from urteil.harness.verify.validation.part_checks import column_problems


def problems(folder: Path, table: str, rows: list[dict[str, Any]]) -> str:
    """The problems of a part with these rows."""
    part = folder / "part-0.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMAS[table]), part)
    return "; ".join(column_problems(part, table))


def value(column: Column) -> Any:
    """A value that the column may hold."""
    if column.words:
        return min(column.words)
    limits = column.limits
    if limits is not None:
        return max(0, limits[0])
    return {pa.string(): "a", pa.bool_(): True, pa.float64(): 1.0}.get(column.type, 0)


@pytest.mark.parametrize("table", TABLES)
def test_meanings_are_sentences_and_bounds_fit_the_type(table: str) -> None:
    for column in TABLES[table].columns:
        assert column.meaning[0] in "`" or column.meaning[0].isupper()
        assert column.meaning.endswith(".")
        assert {*SCHEMAS[table].names}.issuperset(column.not_before)
        assert not column.words or column.type == pa.string()
        assert not (column.required is True and column.uniform)
        pa.array(column.limits or (), column.type)


@pytest.mark.parametrize("table", TABLES)
def test_references_and_call_orders_name_columns(table: str) -> None:
    declared = TABLES[table]
    for reference in declared.references:
        assert {*SCHEMAS[reference.table].names}.issuperset(reference.columns)
        assert {*SCHEMAS[table].names}.issuperset(reference.columns)
    if declared.calls:
        assert {*SCHEMAS[table].names}.issuperset(declared.calls.names)
    for column in declared.columns:
        if isinstance(column.required, When):
            assert column.required.sql
        if isinstance(column.identifies, When):
            assert column.identifies.holds


@pytest.mark.parametrize("table", TABLES)
def test_tables_of_a_healthy_run_have_no_problem(table: str, tmp_path: Path) -> None:
    assert problems(tmp_path, table, healthy().get(table, [])) == ""


@pytest.mark.parametrize("table", TABLES)
def test_values_against_their_declaration_are_reported(table: str, tmp_path: Path) -> None:
    good = {column.name: value(column) for column in TABLES[table].columns}
    assert problems(tmp_path, table, [good, good]) == ""
    for column in TABLES[table].columns:
        missing = problems(tmp_path, table, [good, good | {column.name: None}])
        is_reported = column.required is True or column.uniform
        assert (f"rows without {column.name}" in missing) is is_reported
        if column.words:
            unknown = problems(tmp_path, table, [good, good | {column.name: "OTHER"}])
            assert unknown == f"{column.name} with unknown words ('OTHER')"
        for number in column.limits or ():
            beyond = number + (1 if number > 0 else -1)
            impossible = problems(tmp_path, table, [good, good | {column.name: beyond}])
            assert impossible.startswith(f"{column.name} with impossible numbers ({beyond})")


@pytest.mark.parametrize("table", TABLES)
def test_missing_column_is_reported_unless_it_may_be_missing(table: str, tmp_path: Path) -> None:
    part = tmp_path / "part-0.parquet"
    pq.write_table(pa.table({"other": [1]}), part)
    (problem, *_) = column_problems(part, table)
    needed = [column.name for column in TABLES[table].columns if not column.may_be_missing]
    assert problem == f"it has no {', '.join(needed)} as this version of Urteil writes it"
