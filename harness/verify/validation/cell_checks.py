"""Cells of small tables that are required, or must hold JSON of a certain form.

A violation is reported with its file and left out: the row, if the cell places it, else the cell.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

AGAIN = "collect the evidence again"

Row = dict[str, Any]
_NAME = re.compile(r"[^\[\]{}\"]+")
_STATE = re.compile(r"/partitions/\d+/state$")
Fits = Callable[[Any], bool]


def _brokers(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is int for one in value)


def _replicas(value: Any) -> bool:
    """A partition's, or a topic's by partition."""
    if not isinstance(value, dict):
        return _brokers(value)
    return all(name.isdigit() and _brokers(one) for name, one in value.items())


def _starts(value: Any) -> bool:
    return isinstance(value, dict) and all(
        name.isdigit() and type(start) is int for name, start in value.items()
    )


def _harm(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("brokers", {}), dict):
        return False
    logs = list(value.get("brokers", {}).values())
    return (not logs or type(value.get("at_ns")) is int) and all(map(_ranges, logs))


def _ranges(logs: Any) -> bool:
    return isinstance(logs, dict) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(one is None or type(one) is int for one in pair)
        for pair in logs.values()
    )


def _object(value: Any) -> bool:
    """Whose parts by partition are such, too."""
    parts = ("elected", "offsets", "low_watermarks")
    return isinstance(value, dict) and all(isinstance(value.get(one, {}), dict) for one in parts)


NEEDED: dict[str, tuple[str, ...]] = {
    "logs": ("broker", "topic_id", "partition", "log_end"),
    "passes": ("client", "session", "pass", "topic_id", "partition", "to_offset"),
    "states": ("zxid", "at_ns", "version", "topic_id", "partition", "leader_epoch", "isr"),
    "txns": ("client", "session", "txn", "begin_ns", "outcome"),
}
"""Of `passes`, those that are final and complete need them; of `states`, those of a partition all,
the others the first three."""
JSON: dict[str, dict[str, tuple[str, Fits]]] = {
    "states": {
        "isr": ("a list of brokers", _brokers),
        "replicas": ("a list of brokers, or one for each partition", _replicas),
    },
    "logs": {"epochs": ("an object of epochs and their start offsets", _starts)},
    "faults": {
        "targets": ("a name, or a list of names", lambda value: isinstance(value, list)),
        "harm": ('{"at_ns": t, "brokers": {"b1": {"topic-0": [low, high]}}}', _harm),
    },
    "admin_ops": dict.fromkeys(("before", "after"), ("an object", _object)),
    "samples": {"labels": ("an object", _object)},
}


def clean(table: str, rows: Sequence[Row]) -> list[Row]:
    """The rows that can be placed, with null for every cell that is not what it should be."""
    kept = [row for row in rows if _has_place(table, row)]
    for column in JSON.get(table, ()):
        for row in kept:
            row[column] = row[column] if _fits(table, column, row.get(column)) else None
    return kept


def odd(table: str, name: str, rows: Sequence[Row]) -> Iterator[str]:
    """A sentence for each column of part `name` with cells that `clean` leaves out."""
    lost = sum(not _has_place(table, row) for row in rows)
    if lost:
        yield f"{name}: {lost} rows lack one of {', '.join(NEEDED[table])}: {AGAIN}"
    for column, (kind, _) in JSON.get(table, {}).items():
        wrong = [row[column] for row in rows if not _fits(table, column, row.get(column))]
        if wrong:
            first = " ".join(wrong[0][:60].split())
            yield f"{name}: {column} of {len(wrong)} rows is not {kind}, as {first}: {AGAIN}"


def labels(row: Row) -> Row:
    """The labels of a row of `samples`; none where they are not what they should be."""
    value = row["labels"] or "{}"
    return dict(json.loads(value)) if _fits("samples", "labels", value) else {}


def _has_place(table: str, row: Row) -> bool:
    if table == "passes" and not (row["final"] and row["complete"]):
        return True
    needed = NEEDED.get(table, ())
    if table == "states" and (row.get("version") == -1 or not _of_a_partition(row)):
        needed = needed[:3]
    return all(row.get(name) is not None for name in needed)


def _of_a_partition(row: Row) -> bool:
    return row.get("partition") is not None or bool(_STATE.search(row.get("path") or ""))


def _fits(table: str, column: str, text: str | None) -> bool:
    if text is None or (column == "targets" and _NAME.fullmatch(text)):
        return True
    try:
        return JSON[table][column][1](json.loads(text))
    except (ValueError, RecursionError):
        return False
