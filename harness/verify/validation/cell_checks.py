"""Checks of the cells of small tables: those that place a row, and JSON of a declared form.

A violation is reported with its file and left out: the row, if the cell places it, else the cell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from urteil.harness.evidence.columns import Column, When
from urteil.harness.evidence.schema import TABLES

AGAIN = "collect the evidence again"

Row = dict[str, Any]
_NAME = re.compile(r"[^\[\]{}\"]+")
_PLACING = {
    table.name: columns
    for table in TABLES.values()
    if (columns := [column for column in table.columns if column.identifies])
}
_ALWAYS_PLACING = {
    table: [column.name for column in columns if column.identifies is True]
    for table, columns in _PLACING.items()
}
_SOMETIMES_PLACING = {
    table: [
        (column.name, column.identifies)
        for column in columns
        if isinstance(column.identifies, When)
    ]
    for table, columns in _PLACING.items()
}
_FORMED = {
    table.name: columns
    for table in TABLES.values()
    if (columns := [column for column in table.columns if column.form])
}
CHECKED = sorted(_PLACING.keys() | _FORMED.keys())
"""Tables with such cells."""


def placing_columns(table: str) -> Sequence[str]:
    """The columns whose nulls are all that `drop_invalid` minds; empty if it looks further."""
    looks_further = table in _FORMED or _SOMETIMES_PLACING.get(table)
    return () if looks_further else _ALWAYS_PLACING.get(table, ())


def drop_invalid(table: str, rows: Sequence[Row]) -> list[Row]:
    """The rows that have a place, with null for every cell that is not of its form."""
    kept = [row for row in rows if _has_place(table, row)]
    for column in _FORMED.get(table, ()):
        for row in kept:
            row[column.name] = row[column.name] if _fits(column, row.get(column.name)) else None
    return kept


def describe_invalid(table: str, part: str, rows: Sequence[Row]) -> Iterator[str]:
    """A sentence for the rows, and for each column with cells, that `drop_invalid` leaves out."""
    if lost := sum(not _has_place(table, row) for row in rows):
        names = ", ".join(column.name for column in _PLACING[table])
        yield f"{part}: {lost} rows lack one of {names}: {AGAIN}"
    for column in _FORMED.get(table, ()):
        cells = (row.get(column.name) for row in rows)
        wrong = [cell for cell in cells if cell is not None and not _fits(column, cell)]
        if wrong and column.form:
            first = " ".join(wrong[0][:60].split())
            yield (
                f"{part}: {column.name} of {len(wrong)} rows is not {column.form.text}, as "
                f"{first}: {AGAIN}"
            )


def labels(row: Row) -> Row:
    """The labels of a row of `samples`; none if they are not of their form."""
    cell = row["labels"] or "{}"
    return dict(json.loads(cell)) if _fits(TABLES["samples"].column("labels"), cell) else {}


def _has_place(table: str, row: Row) -> bool:
    if None in map(row.get, _ALWAYS_PLACING.get(table, ())):
        return False
    for name, when in _SOMETIMES_PLACING.get(table, ()):
        if row.get(name) is None and when.holds is not None and when.holds(row):
            return False
    return True


def _fits(column: Column, cell: str | None) -> bool:
    form = column.form
    if form is None or cell is None or (form.or_name and _NAME.fullmatch(cell)):
        return True
    try:
        return form.fits(json.loads(cell))
    except (ValueError, RecursionError):
        return False
