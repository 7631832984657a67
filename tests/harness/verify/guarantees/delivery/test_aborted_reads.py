"""A live read of an aborted record is a violation, whatever the final log has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.guarantees.transactions.transaction_evidence import (
    ONE,
    Tables,
    judged,
    transactional_tables,
)
from urteil.harness.verify.result import Status

ABORTED, UNKNOWN = 8, 5
"""A transaction that its client aborted, and one of unknown outcome whose records are missing."""
LIVE_READER = "live"
LEADER, FOLLOWER = 1, 2


def served(txn: int, isolation: str = "read_committed") -> tuple[Tables, dict[str, Any]]:
    """A live reader received the first record of a transaction."""
    tables = transactional_tables()
    send = next(row for row in tables["sends"] if row["txn"] == txn)
    reader = next(row for row in tables["clients"] if row["client"] == "c0")
    read = next(
        row for row in tables["reads"]
        if row["client"] == "c0" and row["value_id"] == send["value_id"]
    )  # fmt: skip
    tables["clients"].append(reader | {"client": LIVE_READER, "isolation": isolation})
    tables["reads"].append(read | {"client": LIVE_READER})
    return tables, send


def drop_from_logs(tables: Tables, send: dict[str, Any], *brokers: int) -> None:
    tables["replicas"] = [
        row for row in tables["replicas"]
        if row["value_id"] != send["value_id"] or row["broker"] not in brokers
    ]  # fmt: skip


def mark(tables: Tables, send: dict[str, Any], control: str, *brokers: int) -> None:
    """Write a marker of the record's producer behind the log of these brokers."""
    model = next(row for row in tables["replicas"] if row["value_id"] == send["value_id"])
    at = {"offset": ONE.records, "batch_base": ONE.records, "sequence": -1}
    nothing = {"value_id": None, "key": None, "control": control}
    tables["replicas"] += [model | at | nothing | {"broker": broker} for broker in brokers]
    for row in tables["logs"]:
        row |= {"log_end": ONE.records + 1, "high_watermark": ONE.records + 1}


def aborted_reads(tables: Tables, folder: Path) -> list[tuple[str, int | None]]:
    result = judged(folder, tables, "aborted_read")["aborted_read"]
    return [(finding.sub_kind, finding.offset) for finding in result.findings]


@pytest.mark.parametrize("brokers", [(), (LEADER,), (1, 2, 3)])
def test_client_aborted_record_is_found_wherever_it_still_is(
    brokers: tuple[int, ...], tmp_path: Path
) -> None:
    tables, send = served(ABORTED)
    drop_from_logs(tables, send, *brokers)
    assert aborted_reads(tables, tmp_path) == [("aborted by its client", send["offset"])]


def test_abort_marker_on_a_follower_proves_the_abort(tmp_path: Path) -> None:
    tables, send = served(UNKNOWN)
    mark(tables, send, "abort", FOLLOWER)
    drop_from_logs(tables, send, 1, 3)
    assert aborted_reads(tables, tmp_path) == [("aborted transaction", send["offset"])]


def test_commit_marker_on_a_follower_proves_no_abort(tmp_path: Path) -> None:
    tables, send = served(UNKNOWN)
    mark(tables, send, "commit", FOLLOWER)
    drop_from_logs(tables, send, 1, 3)
    assert aborted_reads(tables, tmp_path) == []


def test_aborted_record_may_be_read_uncommitted(tmp_path: Path) -> None:
    tables, send = served(ABORTED, "read_uncommitted")
    drop_from_logs(tables, send, 1, 2, 3)
    assert aborted_reads(tables, tmp_path) == []


def test_lost_answer_to_a_commit_proves_no_abort(tmp_path: Path) -> None:
    tables, send = served(UNKNOWN)
    drop_from_logs(tables, send, 1, 2, 3)
    assert judged(tmp_path, tables, "aborted_read")["aborted_read"].status is not Status.VIOLATED


def test_late_end_of_an_earlier_transaction_excuses_the_read(tmp_path: Path) -> None:
    tables, send = served(ABORTED)
    txn = next(row for row in tables["txns"] if row["txn"] == ABORTED)
    txn["late_end_ns"] = txn["begin_ns"] + 1
    drop_from_logs(tables, send, 1, 2, 3)
    assert aborted_reads(tables, tmp_path) == []
