"""A transaction that an earlier commit request ended may be read before its own commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.guarantees.transactions.transaction_evidence import (
    BATCH,
    MS,
    READER,
    judged,
    transactional_tables,
)
from urteil.harness.verify.result import Status

OFFSET = 25


@pytest.mark.parametrize(("late", "status"), [(True, Status.PERMITTED), (False, Status.VIOLATED)])
def test_records_of_a_late_end_may_be_read_early(
    late: bool, status: Status, tmp_path: Path
) -> None:
    tables = transactional_tables()
    txn = next(row for row in tables["txns"] if row["txn"] == OFFSET // BATCH)
    for read in tables["reads"]:
        if read["client"] == READER and read["offset"] == OFFSET:
            read["read_ns"] = txn["commit_invoke_ns"] - 1
    if late:
        txn["late_end_ns"] = txn["begin_ns"] + MS // 8
    result = judged(tmp_path, tables, "future_read", "precommitted_read")
    assert {outcome.status for outcome in result.values()} == {status}
    (finding,) = result["future_read"].findings
    assert (finding.sub_kind, finding.offset) == ("before its commit", OFFSET)
    assert ("KAFKA-17754" in str(finding.permitted)) == late
