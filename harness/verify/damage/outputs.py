"""Damage to the results of an application that writes each key as its value (the query
`MADE_UP_EXPECTED`)."""

from __future__ import annotations

from urteil.harness.verify.damage.copy import Copy, damage
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.expected_outputs import MADE_UP_SINK


@damage("change a result", "wrong_result", "wrong")
def change_result(copy: Copy) -> int:
    key = copy.take()["value_id"]
    return _write(copy, key, key + "0")


@damage("write a result twice", "wrong_result", "repeated")
def repeat_result(copy: Copy) -> int:
    key = copy.take()["value_id"]
    _write(copy, key, key)
    return _write(copy, key, key)


@damage("write a result that no input gives", "wrong_result", "unexpected")
def make_up_result(copy: Copy) -> int:
    key = copy.take()["value_id"]
    _write(copy, key, key)
    return _write(copy, "no record", "no result")


def _write(copy: Copy, key: str, value: str) -> int:
    """Append a row to the made-up sink. Returns its position."""
    rows: list[Row] = copy.rows("outputs")
    position = len(rows)
    rows.append(
        {"application": "made up", "sink": MADE_UP_SINK, "partition": 0, "position": position}
        | {"key": key, "value": value, "value_id": None, "timestamp_ms": None}
    )
    return position
