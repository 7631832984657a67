"""Tables in text form: CSV, JSON, or JSON lines, each optionally packed by gzip."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from urteil.harness.evidence.schema import SCHEMAS, TABLES

SUFFIXES = (".csv", ".json", ".jsonl", ".ndjson")
"""Each also with `.gz` behind it."""
_TRUTH = {"true": True, "t": True, "yes": True, "1": True, "1.0": True}
_TRUTH |= {"false": False, "f": False, "no": False, "0": False, "0.0": False}
_WORDS = {c.name for table in TABLES.values() for c in table.columns if c.words}
_SIGNS = (",", ";", "\t")
_MS_NS = 1_000_000
_MOST_EXACT = 1 << 53


class TablesError(ValueError):
    """The folder holds no history in this form. The message has the place and the expected form."""


def read(name: str, file: Path) -> pa.Table:
    """The table `name` of a text file. Unknown columns are ignored, missing ones left out.

    Rows are counted from 1, without a header.
    """
    lines = _csv(file) if ".csv" in file.suffixes else _json(file)
    columns = {column.name: column for column in SCHEMAS[name]}
    with _reject_empty(file):
        header = [column.strip().lower() for column in next(lines)]
        if len({*header}) < len(header):
            raise TablesError(f"{file}: it has a column twice ({', '.join(header)})")
        rows = [_row(file, number, header, row) for number, row in enumerate(lines, 1)]
    kept = {column: at for at, column in enumerate(header) if column in columns}
    return pa.table(
        {
            column: to_column([row[at] for row in rows], columns[column], file)
            for column, at in kept.items()
        }
    )


def to_column(values: Sequence[Any], column: pa.Field, file: Path) -> pa.Array:
    """Texts or JSON values as the type of `column`. Empty ones are null."""
    cells = []
    for number, value in enumerate(values, 1):
        try:
            cells.append(_value(value, column))
        except (ValueError, OverflowError, pa.ArrowException):
            kind = f"{column.type}, or a time by ISO 8601" if _unit(column) else column.type
            raise TablesError(
                f"{file}, row {number}: {column.name} is {str(value)[:60]!r}, should be {kind}"
            ) from None
    return pa.array(cells, column.type)


def _value(value: Any, column: pa.Field) -> Any:
    if value is None or value == "":
        return None
    if isinstance(value, list | dict):
        value = json.dumps(value)
    if pa.types.is_string(column.type):
        return str(value).lower() if column.name in _WORDS else str(value)
    text = str(value).strip().lower()
    if text in ("null", "none", "nan"):
        return None
    if pa.types.is_boolean(column.type):
        if text not in _TRUTH:
            raise ValueError(text)
        return _TRUTH[text]
    if pa.types.is_floating(column.type):
        return float(text)
    return pa.scalar(_integer(text, _unit(column)), column.type).as_py()


def _integer(text: str, unit_ns: int) -> int:
    """Parse an integer, also `5.0`, as columns with gaps are often written, or a time
    by ISO 8601."""
    try:
        return int(text)
    except ValueError:
        pass
    if unit_ns and text.count("-") >= 2 and ":" in text:
        return time_ns(text.upper()) // unit_ns
    number = float(text)
    if not number.is_integer() or abs(number) > _MOST_EXACT:
        raise ValueError(text)
    return int(number)


def time_ns(text: str) -> int:
    """Nanoseconds since 1970. A time without zone is UTC."""
    for kind in (pa.timestamp("ns", "UTC"), pa.timestamp("ns")):
        try:
            return int(pa.scalar(text).cast(kind).value)
        except pa.ArrowInvalid:
            continue
    raise ValueError(text)


def _unit(column: pa.Field) -> int:
    return 1 if column.name.endswith("_ns") else _MS_NS if column.name == "timestamp_ms" else 0


def _row(file: Path, number: int, header: Sequence[str], row: Sequence[Any]) -> Sequence[Any]:
    if len(row) != len(header):
        raise TablesError(
            f"{file}, row {number}: {len(row)} cells, the header names {len(header)} columns"
        )
    return row


@contextmanager
def _reject_empty(file: Path) -> Iterator[None]:
    try:
        yield
    except StopIteration:
        raise TablesError(f"{file} is empty: its first line is to name the columns") from None
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise TablesError(f"{file} cannot be read as UTF-8 text ({error})") from None


def _open(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
    return file.open(encoding="utf-8-sig", newline="")


def _csv(file: Path) -> Iterator[list[str]]:
    with _open(file) as text:
        first = text.readline()
        sign = max(_SIGNS, key=first.count)
        yield from (row for row in csv.reader(chain([first], text), delimiter=sign) if row)


def _json(file: Path) -> Iterator[list[Any]]:
    """A header with the names of all objects, then their values."""
    with _open(file) as text:
        objects = list(_objects(file, text))
    names = list(dict.fromkeys(name for row in objects for name in row))
    yield [str(name) for name in names]
    for row in objects:
        yield [row.get(name) for name in names]


def _objects(file: Path, text: TextIO) -> Iterator[dict[str, Any]]:
    """One array of objects, or one object a line."""
    first = text.read(1)
    while first.isspace():
        first = text.read(1)
    if first == "[":
        numbered = enumerate([f"[{text.read()}"], 0)
    else:
        numbered = enumerate((first + text.read()).split("\n"), 1)
    for number, line in numbered:
        try:
            value = json.loads(line) if line.strip() else []
        except (ValueError, RecursionError) as error:
            where = f", line {number}" if number else ""
            raise TablesError(f"{file}{where}: it is not JSON ({error})") from None
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                raise TablesError(f"{file}: expected are objects, one a record, not {item!r:.60}")
            yield item
