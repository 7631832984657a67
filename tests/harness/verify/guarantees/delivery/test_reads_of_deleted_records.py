"""Reads of a record before retention deleted it prove that the record was repeated or misplaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, Tables, healthy, topic
from tests.harness.verify.guarantees.groups.test_group_guarantees import judge
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult

START, VICTIM, AT = 100, 40, 60
"""Where the logs begin, a deleted record, and another deleted offset."""


def shortened() -> Tables:
    """Retention deleted the first records of every log; a live reader had received them."""
    tables = healthy()
    for row in (*tables["logs"], *(row for row in tables["passes"] if row["final"])):
        row["log_start" if "log_start" in row else "from_offset"] = START
    tables["replicas"] = [row for row in tables["replicas"] if row["offset"] >= START]
    tables["reads"] = [
        row for row in tables["reads"] if row["offset"] >= START or row["client"] != "final"
    ]
    return tables


def deliver(tables: Tables, *offsets: int) -> None:
    """One live reader received the victim at these offsets, and no reader received another record
    there."""
    (read,) = [
        row for row in tables["reads"] if row["client"] == "c0" and row["offset"] == VICTIM
    ]  # fmt: skip
    tables["reads"] = [
        row for row in tables["reads"] if row["offset"] not in (VICTIM, *offsets)
    ] + [read | {"offset": offset} for offset in offsets]  # fmt: skip


def result_of(run_dir: Path, tables: Tables, name: str) -> GuaranteeResult:
    facts = synthetic.facts(ONE, topics=topic(retention_ms="1000"))
    return judge(run_dir, tables, synthetic.scenario(ONE), facts, (name,))[name]


@pytest.mark.parametrize("name", ["duplicate", "misplaced_ack"])
def test_deleted_records_at_their_places_yield_no_finding(name: str, tmp_path: Path) -> None:
    assert result_of(tmp_path, shortened(), name).violations == 0


def test_record_received_at_two_offsets_is_a_duplicate(tmp_path: Path) -> None:
    tables = shortened()
    deliver(tables, VICTIM, AT)
    (finding,) = result_of(tmp_path, tables, "duplicate").findings
    assert (finding.sub_kind, finding.offset, finding.permitted) == ("read", VICTIM, None)
    assert f"was read at 2 offsets, first at urteil-0@{VICTIM}, last at {AT}" in finding.sentence


def test_retry_without_idempotence_may_be_received_twice(tmp_path: Path) -> None:
    tables = shortened()
    deliver(tables, VICTIM, AT)
    for send in tables["sends"]:
        send["idempotent"] = False
    assert result_of(tmp_path, tables, "duplicate").violations == 0


def test_acknowledged_record_received_elsewhere_is_misplaced(tmp_path: Path) -> None:
    tables = shortened()
    deliver(tables, AT)
    (finding,) = result_of(tmp_path, tables, "misplaced_ack").findings
    assert (finding.sub_kind, finding.offset, finding.permitted) == ("elsewhere", VICTIM, None)
    assert f"was read at offset {AT}, and at the acknowledged one by no client" in finding.sentence


def test_unread_deleted_record_is_not_misplaced(tmp_path: Path) -> None:
    tables = shortened()
    deliver(tables)
    assert result_of(tmp_path, tables, "misplaced_ack").violations == 0
