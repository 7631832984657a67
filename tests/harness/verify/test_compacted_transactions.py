"""Transactions on a compacted topic: the records of readers and of replicas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import Tables, topic
from tests.harness.verify.guarantees.groups.test_group_guarantees import judge
from tests.harness.verify.guarantees.transactions.test_missing_markers import DAY, with_markers
from tests.harness.verify.guarantees.transactions.transaction_evidence import (
    BATCH,
    FATES,
    MS,
    ONE,
    READER,
    transactional_tables,
)
from urteil.harness.verify import synthetic
from urteil.harness.verify.synthetic import END_NS

BRIEF = DAY | {"delete_retention_ms": "1000"}
NAMES = ("latest_value_lost", "tombstone_too_early", "stale_value_visible", "compacted_too_early")
MARKER = ONE.records + 1


def _found(run_dir: Path, tables: Tables, *names: str, **config: str) -> list[tuple[str, str, Any]]:
    run_facts = synthetic.facts(ONE, topics=topic(**config or DAY))
    result = judge(run_dir, tables, synthetic.scenario(ONE), run_facts, names or NAMES)
    return [
        (name, finding.sub_kind, finding.offset)
        for name in names or NAMES for finding in result[name].findings if not finding.permitted
    ]  # fmt: skip


def _keyed() -> Tables:
    """Every record has a key of its own."""
    tables = transactional_tables()
    for table in ("sends", "reads", "replicas"):
        for row in tables[table]:
            row["key"] = f"k{row['offset']}"
    return tables


def _hide(tables: Tables, offset: int) -> None:
    tables["reads"] = [
        row for row in tables["reads"] if row["client"] != READER or row["offset"] != offset
    ]


@pytest.mark.parametrize("fate", range(len(FATES)), ids=FATES)
@pytest.mark.parametrize("tombstone", [False, True])
def test_read_committed_reader_gets_the_last_value_of_a_key(
    fate: int, tombstone: bool, tmp_path: Path
) -> None:
    """Of a committed transaction; values of others need not be delivered."""
    tables = _keyed()
    offset = (48 + fate) * BATCH
    for send in tables["sends"]:
        send["tombstone"] = tombstone and send["offset"] == offset
    _hide(tables, offset)
    name = "tombstone_too_early" if tombstone else "latest_value_lost"
    expected = [(name, "not served", offset)] if FATES[fate] == "committed" else []
    assert _found(tmp_path, tables) == expected


def test_records_possibly_aborted_by_a_late_end_may_be_missing(tmp_path: Path) -> None:
    tables = _keyed()
    _hide(tables, 48 * BATCH)
    txn = next(row for row in tables["txns"] if row["txn"] == 48)
    txn["late_end_ns"] = txn["begin_ns"] + MS // 8
    assert _found(tmp_path, tables) == []


def _at(tables: Tables, offset: int, broker: int) -> dict[str, Any]:
    return next(
        row for row in tables["replicas"] if row["offset"] == offset and row["broker"] == broker
    )


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_marker_with_another_outcome_on_one_replica_is_found(broker: int, tmp_path: Path) -> None:
    tables = with_markers()
    _at(tables, MARKER, broker)["control"] = "abort"
    findings = _found(tmp_path, tables, "replica_divergence", **BRIEF)
    assert findings == [("replica_divergence", "content", MARKER)]


@pytest.mark.parametrize("config", [DAY, BRIEF], ids=["kept for a day", "may be cleaned"])
def test_marker_missing_on_one_replica_is_found(config: dict[str, str], tmp_path: Path) -> None:
    """By its time, where ZooKeeper's states show the wall clock."""
    tables = with_markers()
    for row in tables["states"]:
        row["wall_ms"] = row["at_ns"] // MS
    for row in tables["replicas"]:
        row["timestamp_ms"] = END_NS // MS
    tables["replicas"].remove(_at(tables, MARKER, 2))
    findings = _found(tmp_path, tables, "replica_divergence", **config)
    assert findings == ([("replica_divergence", "missing", MARKER)] if config is DAY else [])


def test_record_in_another_epoch_on_one_replica_is_found(tmp_path: Path) -> None:
    tables = _keyed()
    _at(tables, 100, 3)["leader_epoch"] += 7
    findings = _found(tmp_path, tables, "replica_divergence")
    assert findings == [("replica_divergence", "leader epoch", 100)]
