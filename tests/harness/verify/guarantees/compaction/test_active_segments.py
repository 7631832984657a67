"""The cleaner removes nothing of an active segment, on any replica."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy, topic
from urteil.harness.verify import synthetic

OFFSET, ACTIVE = 150, 200
COMPACT = {"cleanup_policy": "compact"}
LAGGING = COMPACT | {"min_compaction_lag_ms": "86400000"}


def _tables(*bases: int | None) -> Tables:
    """A compacted log whose active segments begin there; every record has a key of two."""
    tables = healthy()
    for log in tables["logs"]:
        log["active_base"] = bases[log["broker"] - 1]
    for table in ("sends", "reads", "replicas"):
        for row in tables[table]:
            row["key"] = f"k{row['offset'] // 2 * 2 + (row['offset'] >= ONE.records - 2)}"
    return tables


def _clean(tables: Tables, offset: int, *brokers: int) -> None:
    tables["replicas"] = [
        row for row in tables["replicas"]
        if row["offset"] != offset or row["broker"] not in brokers
    ]  # fmt: skip


def _leader(tables: Tables) -> int:
    return int(max(tables["states"], key=lambda row: int(row["zxid"]))["leader"])


def _found(run_dir: Path, tables: Tables, **config: str) -> list[tuple[str, Any]]:
    facts = synthetic.facts(ONE, topics=topic(**config))
    findings = alone("compacted_too_early", run_dir, tables, facts=facts).findings
    return [(finding.sub_kind, finding.offset) for finding in findings]


@pytest.mark.parametrize("reported", [True, False])
def test_a_replica_that_fetched_a_cleaned_log_has_fewer_segments(
    reported: bool, tmp_path: Path
) -> None:
    """It leads at the end, and its active segment begins before offsets that other replicas had
    cleaned."""
    bases: list[int | None] = [ACTIVE] * 3
    tables = _tables(*bases)
    led = _leader(tables)
    for log in tables["logs"]:
        if log["broker"] == led:
            log["active_base"] = 0 if reported else None
    for row in tables["replicas"]:
        row["segment_base"] = ACTIVE if row["broker"] != led and row["offset"] >= ACTIVE else 0
    _clean(tables, OFFSET, 1, 2, 3)
    assert _found(tmp_path, tables, **COMPACT) == []
    _clean(tables, ACTIVE, 1, 2, 3)
    assert _found(tmp_path / "active", tables, **COMPACT) == [("active segment", ACTIVE)]


@pytest.mark.parametrize(
    ("config", "sub_kind"), [(COMPACT, "active segment"), (LAGGING, "inside the lag")]
)
def test_follower_that_cleans_too_early_is_a_violation(
    config: dict[str, str], sub_kind: str, tmp_path: Path
) -> None:
    tables = _tables(ACTIVE, ACTIVE, ACTIVE)
    offset = ACTIVE if config is COMPACT else OFFSET
    _clean(tables, offset, _leader(tables) % 3 + 1)
    facts = synthetic.facts(ONE, topics=topic(**config))
    (finding,) = alone("compacted_too_early", tmp_path, tables, facts=facts).findings
    assert (finding.sub_kind, finding.offset) == (f"{sub_kind}, on some replicas", offset)
    assert "is gone from the log of a replica" in finding.sentence


def test_records_cleaned_in_time_may_be_missing(tmp_path: Path) -> None:
    tables = _tables(ACTIVE, ACTIVE, ACTIVE)
    _clean(tables, OFFSET, _leader(tables) % 3 + 1)
    assert _found(tmp_path, tables, **COMPACT) == []
