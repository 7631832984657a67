"""A tombstone is removed once it is old enough; compaction removes nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy, topic
from urteil.harness.verify import synthetic
from urteil.harness.verify.synthetic import S

OLD, YOUNG = 5, 380
"""Offsets of tombstones, acknowledged at the begin and at the end of the load."""
BRIEF = {"cleanup_policy": "compact", "max_compaction_lag_ms": "1000", "retention_ms": "1000",
         "delete_retention_ms": "1000"}  # fmt: skip


def _tables(active_base: int) -> Tables:
    """Every record has a key of its own, two are tombstones; the last was acknowledged late."""
    tables = healthy()
    for log in tables["logs"]:
        log["active_base"] = active_base
    for table in ("sends", "reads", "replicas"):
        for row in tables[table]:
            row["key"] = f"k{row['offset']}"
    for send in tables["sends"]:
        send["tombstone"] = send["offset"] in (OLD, YOUNG)
    last = max(tables["sends"], key=lambda row: row["offset"])
    last["complete_ns"] += 15 * S
    return tables


@pytest.mark.parametrize(
    ("config", "active_base", "kept"),
    [
        (BRIEF, ONE.records, [OLD]),
        (BRIEF | {"delete_retention_ms": "86400000"}, ONE.records, []),
        ({"cleanup_policy": "compact", "delete_retention_ms": "1000"}, ONE.records, []),
        (BRIEF, OLD, []),
    ],
    ids=["old", "stays for a day", "cleaned some day", "active"],
)
def test_tombstone_above_its_retention_is_found(
    config: dict[str, str], active_base: int, kept: list[int], tmp_path: Path
) -> None:
    facts = synthetic.facts(ONE, topics=topic(**config))
    findings = alone("stale_value_visible", tmp_path, _tables(active_base), facts=facts).findings
    assert [(finding.sub_kind, finding.offset) for finding in findings] == [
        ("tombstone kept", at) for at in kept
    ]


@pytest.mark.parametrize(
    ("policy", "expected"), [("compact", {"compacted"}), ("compact,delete", set())]
)
def test_compacted_log_keeps_its_start(policy: str, expected: set[str], tmp_path: Path) -> None:
    tables = _tables(ONE.records)
    for log in tables["logs"]:
        log["log_start"] = 60
    facts = synthetic.facts(ONE, topics=topic(**BRIEF | {"cleanup_policy": policy}))
    result = alone("retained_too_short", tmp_path, tables, facts=facts)
    assert {finding.sub_kind for finding in result.findings} == expected
    assert result.violations == (60 if expected else 0)
