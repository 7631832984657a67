"""Columns of `sends`, `reads` and `clients` that are optional, and how they are derived."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from urteil.harness.evidence.schema import SCHEMAS, TABLES

NEEDED = {
    table.name: names
    for table in TABLES.values()
    if (names := tuple(column.name for column in table.columns if column.import_needs))
}
"""Besides `topic` or `topic_id`. Others are derived from these, or their checks are not judged."""
SHARED = ("key", "timestamp_ms")
"""Columns compared between both tables: used only where both have them."""

Settings = dict[str, Any]


def fill_columns(table: str, have: pa.Table, run: str, settings: Settings) -> pa.Table:
    """`have` with every column of its schema, derived from the others where it is missing.

    Missing client settings are taken from `settings`.
    """
    names = set(have.column_names)
    own = {column.name: column.import_default for column in TABLES[table].columns}
    own |= {"run": run, **(settings if table == "sends" else {})}
    for name, other in (("topic_id", "topic"), ("topic", "topic_id")):
        if name not in names and other in names:
            have = have.append_column(name, have[other])
    if table == "sends" and "partition_intended" not in names:
        have = have.append_column("partition_intended", have["partition"])
    for column in SCHEMAS[table]:
        if column.name not in have.column_names:
            value = pa.scalar(own.get(column.name), column.type)
            have = have.append_column(column, pa.repeat(value, len(have)))
    for name, value in settings.items() if table == "sends" else ():
        at = have.column_names.index(name)
        have = have.set_column(at, have.schema.field(at), pc.fill_null(have[name], value))
    if table == "sends" and "op" not in names:
        return _replace_column(have, "op", _row_numbers(have, ("client",), ("invoke_ns",)))
    if table == "reads" and "poll" not in names:
        order = ("read_ns", "position_in_poll")
        have = _replace_column(have, "poll", _row_numbers(have, ("client", "session"), order))
    elif table == "reads" and "position_in_poll" not in names:
        places = _row_numbers(have, ("client", "session", "poll"), ("read_ns",))
        have = _replace_column(have, "position_in_poll", places)
    if table == "reads" and "pass" not in names:
        return _replace_column(have, "pass", _stretches(have))
    return have


def drop_columns(have: pa.Table, names: Sequence[str]) -> pa.Table:
    """`have` without some columns."""
    return have.drop_columns([name for name in names if name in have.column_names])


def client_rows(sends: pa.Table, reads: pa.Table | None, run: str, settings: Settings) -> pa.Table:
    """Rows of `clients` for every client that wrote or read."""
    rows: dict[tuple[Hashable, Hashable], dict[str, Any]] = {}
    for table, kind in ((sends, "producer"), (reads, "consumer")):
        if table is None:
            continue
        pairs = zip(table["client"].to_pylist(), table["session"].to_pylist(), strict=True)
        for client, session in dict.fromkeys(pairs):
            row = {"run": run, "client": client, "session": session, "kind": kind, **settings}
            rows.setdefault((client, session), row)
    return pa.Table.from_pylist(list(rows.values()), schema=SCHEMAS["clients"])


def _replace_column(have: pa.Table, name: str, values: list[int]) -> pa.Table:
    field = have.schema.field(name)
    return have.set_column(have.column_names.index(name), field, pa.array(values, field.type))


def _stretches(reads: pa.Table) -> list[int]:
    """The pass of each read without one.

    A read that steps back, or over records that others read, may follow a seek: it begins another
    pass.
    """
    columns = ("client", "session", "topic_id", "partition")
    places = list(zip(*(reads[name].to_pylist() for name in columns), strict=True))
    polls = zip(reads["poll"].to_pylist(), reads["position_in_poll"].to_pylist(), strict=True)
    order = [(poll or 0, position or 0) for poll, position in polls]
    offsets = reads["offset"].to_pylist()
    known: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    for place, offset in zip(places, offsets, strict=True):
        known[place[2:]].add(offset or 0)
    rows = {place: sorted(there) for place, there in known.items()}
    last: dict[tuple[Any, ...], tuple[int, int]] = {}
    stretches = [1] * len(places)
    for at in sorted(range(len(places)), key=order.__getitem__):
        offset, others = offsets[at] or 0, rows[places[at][2:]]
        number, before = last.get(places[at], (1, offset - 1))
        is_next = before < offset and bisect_right(others, before) == bisect_left(others, offset)
        stretches[at] = number if is_next else number + 1
        last[places[at]] = stretches[at], offset
    return stretches


def _row_numbers(have: pa.Table, whose: tuple[str, ...], by: tuple[str, ...]) -> list[int]:
    """The number of each row among those with the same `whose`, ordered by `by`, then
    by position."""
    keys = list(zip(*(have[name].to_pylist() for name in whose), strict=True))
    columns = ([time or 0 for time in have[name].to_pylist()] for name in by)
    times = list(zip(*columns, strict=True))
    counts: dict[tuple[Any, ...], int] = defaultdict(int)
    numbers = [0] * len(keys)
    for at in sorted(range(len(keys)), key=times.__getitem__):
        numbers[at] = counts[keys[at]]
        counts[keys[at]] += 1
    return numbers
