"""Rows survive interruptions of a campaign."""

from __future__ import annotations

from pathlib import Path

from tests.harness.hunt.rows import row
from urteil.harness.hunt import Job, Ledger


def test_written_rows_are_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger(path)
    ledger.add(row(seed=1))
    ledger.add(row(seed=2, verdict="FAIL", violated={"lost_write": 2}))
    again = Ledger(path)
    assert again.rows == ledger.rows
    assert again.find(Job(scenario="s", seed=2)) == ledger.rows[1]
    assert again.find(Job(scenario="s", seed=2, mutant="loser")) is None


def test_cut_line_does_not_count_as_a_run(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger(path).add(row(seed=1))
    content = path.read_bytes()
    path.write_bytes(content + content[:40])
    ledger = Ledger(path)
    ledger.add(row(seed=3))
    assert [row.job.seed for row in Ledger(path).rows] == [1, 3]
