"""Reading of a run's Parquet files."""

from __future__ import annotations

from pathlib import Path

from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.verify import evidence


def test_rewritten_part_is_counted_again(tmp_path: Path) -> None:
    counts = []
    for rows in (3, 5, 2):
        at = tmp_path / "evidence" / "polls"
        evidence.write_rows(
            at, SCHEMAS["polls"], [{"client": "c1", "poll": n} for n in range(rows)]
        )
        counts.append(evidence.row_count(tmp_path, "polls"))
    assert counts == [3, 5, 2]


def test_changed_rows_do_not_affect_the_next_caller(tmp_path: Path) -> None:
    evidence.write_rows(tmp_path / "evidence" / "faults", SCHEMAS["faults"], [{"fault": "crash"}])
    (first,) = evidence.rows(tmp_path, "faults")
    first["fault"] = "latency"
    assert [row["fault"] for row in evidence.rows(tmp_path, "faults")] == ["crash"]
