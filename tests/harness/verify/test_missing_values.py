"""A null cell whose value other rows contain causes no finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.verify.example_runs import Tables, healthy, judged, named
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.result import Status, Verdict

AT = 200
AGAIN = "collect the evidence again"


def at(tables: Tables, table: str) -> list[Row]:
    return [row for row in tables[table] if row["offset"] == AT]


@pytest.mark.parametrize(
    ("table", "column", "reason"),
    [
        ("replicas", "batch_base", f"part-0.parquet: it has rows without batch_base: {AGAIN}"),
        ("replicas", "batch_bytes", f"part-0.parquet: it has rows without batch_bytes: {AGAIN}"),
        (
            "replicas",
            "sequence",
            "sequence in records of a producer with an id, timestamp_ms in intact",
        ),
        (
            "replicas",
            "value_id",
            "1 row without value_id of batches that other replicas, or readers, have with it "
            f"(evidence/replicas): {AGAIN}",
        ),
        (
            "replicas",
            "key",
            f"1 row without key of batches that others have with it (evidence/replicas): {AGAIN}",
        ),
        ("reads", "position_in_poll", "it has rows without position_in_poll"),
        (
            "reads",
            "value_id",
            f"1 row without value_id at offsets where others saw it (evidence/reads): {AGAIN}",
        ),
        (
            "reads",
            "key",
            f"1 row without key of records that others have with it (evidence/reads): {AGAIN}",
        ),
        (
            "sends",
            "key",
            "1 row without key of records that all have with one, of clients that send none "
            f"without (evidence/sends): {AGAIN}",
        ),
        (
            "sends",
            "partition",
            "1 send without complete_ns when the outcome is ok, partition when",
        ),
        ("sends", "acks", "evidence/sends/part-0.parquet: it has rows without acks"),
    ],
)
def test_one_empty_cell_is_a_reason_and_yields_no_finding(
    table: str, column: str, reason: str, tmp_path: Path
) -> None:
    tables = healthy()
    at(tables, table)[-1][column] = None
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert [text for text in result.reasons if reason in text]


def _keyless_on_disks(tables: Tables) -> None:
    for row in at(tables, "replicas") + at(tables, "reads"):
        row["key"] = None


def _keyless_and_changed(tables: Tables) -> None:
    at(tables, "reads")[-1] |= {"key": None, "intact": False}


def _another_batch_without_value(tables: Tables) -> None:
    row = at(tables, "replicas")[-1]
    row |= {"value_id": None, "batch_crc": row["batch_crc"] + 1}


def _another_batch_without_key(tables: Tables) -> None:
    row = at(tables, "replicas")[-1]
    row |= {"key": None, "batch_crc": row["batch_crc"] + 1}


def _given_a_key_among_keyless_ones(tables: Tables) -> None:
    mine = at(tables, "sends")[0]
    others = {row["value_id"] for row in tables["sends"] if row["client"] == mine["client"]}
    for table in ("sends", "reads", "replicas"):
        for row in tables[table]:
            if row["value_id"] in others and (table == "sends" or row["offset"] != AT):
                row["key"] = None


@pytest.mark.parametrize(
    ("damage", "name"),
    [
        (_keyless_on_disks, "phantom"),
        (_keyless_and_changed, "corrupt"),
        (_another_batch_without_value, "replica_divergence"),
        (_another_batch_without_key, "phantom"),
        (_given_a_key_among_keyless_ones, "phantom"),
    ],
)
def test_damage_that_all_sources_show_is_the_clusters(
    damage: Callable[[Tables], None], name: str, tmp_path: Path
) -> None:
    tables = healthy()
    damage(tables)
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.FAIL
    assert named(result, name).status is Status.VIOLATED


@pytest.mark.parametrize("column", ["batch_base", "batch_bytes", "transactional"])
def test_value_in_no_row_is_unknown(column: str, tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["replicas"]:
        row[column] = None
    assert judged(tmp_path, tables).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("table", "flag"),
    [
        ("sends", "tombstone"),
        ("sends", "idempotent"),
        ("replicas", "transactional"),
        ("passes", "final"),
        ("passes", "complete"),
    ],
)
def test_flag_absent_from_a_row_is_not_set(table: str, flag: str, tmp_path: Path) -> None:
    tables = healthy()
    for row in tables[table]:
        row[flag] = row.get(flag) or None
    assert judged(tmp_path, tables).verdict is Verdict.PASS


def test_read_without_its_value_is_a_reason(
    tmp_path: Path,
) -> None:
    """No reference requires the record in sound histories, so the verdict was PASS."""
    tables = healthy()
    live = next(row for row in at(tables, "reads") if row["client"] == "c0")
    live["value_id"] = None
    result = judged(tmp_path, tables)
    expected = f"1 row without value_id at offsets where others saw it (evidence/reads): {AGAIN}"
    assert (result.verdict, result.reasons) == (Verdict.UNKNOWN, [expected])


def test_values_of_several_sends_yield_no_finding(tmp_path: Path) -> None:
    tables = healthy()
    first, other = (row for row in tables["sends"] if row["offset"] in (50, 90))
    for rows in (tables["sends"], tables["reads"], tables["replicas"]):
        for row in rows:
            if row["value_id"] == other["value_id"] and row is not other:
                row["value_id"] = first["value_id"]
    other["value_id"] = first["value_id"]
    result = judged(tmp_path, tables)
    assert {
        guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
    } == set()
    expected = (
        "1 value_id of several sends (evidence/sends): each record needs one that no other has"
    )
    assert expected in result.reasons
