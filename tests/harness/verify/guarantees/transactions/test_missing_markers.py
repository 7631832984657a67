"""A log with records of a transaction has the marker that ended it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import topic
from tests.harness.verify.guarantees.groups.test_group_guarantees import judge
from tests.harness.verify.guarantees.transactions.transaction_evidence import (
    ONE,
    Tables,
    first_txn,
    show_records,
    transactional_tables,
)
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult

WRITER, FIRST, SECOND, LAST = "p0", 1000, 1001, 1002
DAY = {"cleanup_policy": "compact", "delete_retention_ms": "86400000"}


def with_markers() -> Tables:
    """The last three records that one producer sent are a transaction each, with a marker after
    each, and there are no others."""
    tables = transactional_tables()
    sends = [row for row in tables["sends"] if row["client"] == WRITER][-3:]
    end = ONE.records
    kept = {row["value_id"]: (FIRST + n, 2 * n) for n, row in enumerate(sends)}
    for name in ("sends", "replicas", "reads"):
        for row in tables[name]:
            if row["value_id"] in kept:
                number, at = kept[row["value_id"]]
                row["offset"] = end + at
                if name == "sends":
                    row["txn"] = number
            elif name == "sends":
                row["txn"] = None
    model = next(row for row in tables["txns"] if row["client"] == WRITER)
    tables["txns"] = []
    for number, send in zip((FIRST, SECOND, LAST), sends, strict=True):
        times = {"begin_ns": send["invoke_ns"] - 1, "end_ns": send["complete_ns"] + 2}
        fields = {"txn": number, "outcome": "committed", "commit_invoke_ns": times["end_ns"] - 1}
        tables["txns"].append(model | fields | times)
    copies = [row for row in tables["replicas"] if row["value_id"] in kept]
    tables["replicas"] += [
        row | {"offset": row["offset"] + 1, "batch_base": row["offset"] + 1, "control": "commit"}
        | {"value_id": None, "key": None, "sequence": -1}
        for row in copies
    ]  # fmt: skip
    for row in tables["logs"]:
        row |= {"log_end": end + 6, "high_watermark": end + 6}
    return tables


def _remove(tables: Tables, number: int, table: str) -> None:
    """Remove the marker of this transaction, or its record, from every log."""
    at = ONE.records + 2 * (number - FIRST) + (table == "marker")
    tables["replicas"] = [row for row in tables["replicas"] if row["offset"] != at]


def _judged(run_dir: Path, tables: Tables, **config: str) -> GuaranteeResult:
    run_facts = synthetic.facts(ONE, topics=topic(**config))
    return judge(run_dir, tables, synthetic.scenario(ONE), run_facts, ("hanging_txn",))[
        "hanging_txn"
    ]


def _findings(run_dir: Path, tables: Tables, **config: str) -> list[tuple[str, Any]]:
    result = _judged(run_dir, tables, **config)
    return [
        (finding.sub_kind, finding.offset) for finding in result.findings if not finding.permitted
    ]


def test_transactions_with_markers_hold(tmp_path: Path) -> None:
    assert not _findings(tmp_path, with_markers())


@pytest.mark.parametrize("config", [{}, DAY], ids=["plain", "compacted"])
def test_missing_marker_is_found(config: dict[str, str], tmp_path: Path) -> None:
    tables = with_markers()
    _remove(tables, FIRST, "marker")
    result = _judged(tmp_path, tables, **config)
    (finding,) = result.findings
    assert (finding.sub_kind, finding.offset) == ("unmarked", ONE.records)
    assert "the log no longer has a marker between them" in finding.sentence


@pytest.mark.parametrize(
    ("retention_ms", "expected"), [("86400000", [("unmarked", ONE.records)]), ("1000", [])]
)
def test_marker_outlives_its_cleaned_records(
    retention_ms: str, expected: list[tuple[str, int]], tmp_path: Path
) -> None:
    tables = with_markers()
    _remove(tables, FIRST, "marker")
    _remove(tables, FIRST, "record")
    config = {"cleanup_policy": "compact", "delete_retention_ms": retention_ms}
    assert _findings(tmp_path, tables, **config) == expected


def test_last_transaction_is_judged_by_the_stable_offset(tmp_path: Path) -> None:
    tables = with_markers()
    _remove(tables, LAST, "marker")
    assert not _findings(tmp_path, tables)


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("unclean", [False, True])
def test_unclean_election_may_merge_a_transaction_with_the_next(
    unclean: bool, copied: bool, tmp_path: Path
) -> None:
    """The election lost the markers, so the producer's next abort ends the earlier transactions
    too. With `copied`, the transactions are an application's, which no journal names."""
    tables = transactional_tables()
    show_records(tables, first_txn(tables, "committed"), 0)
    pids = {row["producer_id"] for row in tables["replicas"]}
    tables["replicas"] += [
        row | {"offset": ONE.records + n, "batch_base": ONE.records + n, "control": "abort"}
        | {"value_id": None, "key": None, "sequence": -1, "producer_id": pid}
        for n, pid in enumerate(sorted(pids)) for row in tables["replicas"] if row["offset"] == 0
    ]  # fmt: skip
    for row in tables["logs"]:
        row["log_end"] = row["high_watermark"] = ONE.records + len(pids)
    config = {}
    if unclean:
        config = {"unclean_leader_election_enable": "true"}
        states = sorted(tables["states"], key=lambda row: row["version"])
        states[2]["isr"] = f"[{states[2]['leader']}]"
    run_facts = synthetic.facts(ONE, topics=topic(**config))
    names = ("aborted_read",) if copied else ("poll_skip", "aborted_read")
    for row in (*tables["reads"], *tables["replicas"]) if copied else ():
        row["value_id"] = None if row["value_id"] is None else f"copy/{row['value_id']}"
    results = judge(tmp_path, tables, synthetic.scenario(ONE), run_facts, names)
    assert {name: results[name].violations > 0 for name in names} == dict.fromkeys(
        names, not unclean
    )
