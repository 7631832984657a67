"""Kafka's own test as an application: the result of its driver, and what its input gives."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from urteil.chaos.observations import LabFailure
from urteil.harness.clients.applications.streams_smoke import (
    EXPECTED,
    driver_result,
    number,
    require_one_day,
)
from urteil.harness.verify.engines.dialect import to_duckdb

NOON_MS = 1_800_014_400_000


def result(tmp_path: Path, *lines: str) -> dict[str | None, str | None]:
    log = tmp_path / "log"
    log.write_text("\n".join(lines))
    return {row.key: row.value for row in driver_result(log)}


def test_last_result_of_the_driver_counts(tmp_path: Path) -> None:
    lines = ("ALL-RECORDS-DELIVERED", "missedRecords=0", "FAILURE", "SUCCESS")
    assert result(tmp_path, *lines) == {"result": "SUCCESS", "delivery": "ALL-RECORDS-DELIVERED"}


def test_driver_that_did_not_verify_has_no_result(tmp_path: Path) -> None:
    lines = ("100 records produced", "PROCESSED-LESS-THAN-GENERATED")
    assert result(tmp_path, *lines) == {
        "result": "none",
        "delivery": "PROCESSED-LESS-THAN-GENERATED",
    }


def test_results_are_computed_from_the_stored_input() -> None:
    with duckdb.connect() as database:
        database.execute("CREATE TABLE outputs (sink STRING, key STRING, value STRING)")
        database.executemany(
            "INSERT INTO outputs VALUES ('data', ?, ?)",
            [("0-9", "3"), ("0-9", "7"), ("flush", "0"), ("1-10", "4")],
        )
        rows = database.execute(to_duckdb(EXPECTED)).fetchall()
    assert {(sink, value) for sink, key, value, *_ in rows if key == "0-9"} == {
        ("max", "7"),
        ("min", "3"),
        ("dif", "4"),
        ("sum", "10"),
        ("cnt", "2"),
    }
    assert {key for _, key, *_ in rows} == {"result", "delivery", "0-9", "1-10"}


def test_numbers_are_signed() -> None:
    assert (number(b"\0\0\0\7"), number(b"\xff" * 4)) == ("7", "-1")


def test_run_over_midnight_is_not_judged() -> None:
    require_one_day([NOON_MS, NOON_MS + 1_000])
    with pytest.raises(LabFailure, match="over midnight UTC"):
        require_one_day([NOON_MS, NOON_MS + 13 * 3_600_000])
