"""Retention deletes only what exceeds its topic's limits of size or time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import ONE, Tables, alone, healthy
from urteil.harness.verify import synthetic

HOUR_MS = 3_600_000
LATE_MS = 10 * HOUR_MS
"""How far wall clocks are ahead of the run's own."""
LIMITS = {
    "max_message_bytes": "480",
    "message_timestamp_before_max_ms": str(HOUR_MS),
    "message_timestamp_after_max_ms": str(HOUR_MS),
}


def _found(run_dir: Path, tables: Tables, **config: str) -> list[tuple[str, int | None]]:
    facts = synthetic.facts(ONE)
    facts.topics[:] = example_runs.topic(**config)
    result = alone("corrupt", run_dir, tables, facts=facts)
    return [(finding.sub_kind, finding.offset) for finding in result.findings]


def _moved(by_ms: int) -> Tables:
    """A record at 100 whose time is so far from its sending."""
    tables = healthy()
    for state in tables["states"]:
        state["wall_ms"] = state["at_ns"] // 1_000_000 + LATE_MS
    for name in ("sends", "reads", "replicas"):
        for row in tables[name]:
            row["timestamp_ms"] += LATE_MS + (by_ms if row["offset"] == 100 else 0)
    return tables


@pytest.mark.parametrize(
    ("by_ms", "expected"),
    [
        (0, []),
        (-HOUR_MS - 1, []),
        (HOUR_MS + 1, []),
        (-2 * HOUR_MS, [("too old", 100)]),
        (2 * HOUR_MS, [("too new", 100)]),
    ],
)
def test_timestamp_too_far_away_is_rejected(
    by_ms: int, expected: list[tuple[str, int]], tmp_path: Path
) -> None:
    assert _found(tmp_path / "limited", _moved(by_ms), **LIMITS) == expected
    assert _found(tmp_path / "free", _moved(by_ms)) == []


def test_batch_above_the_limit_is_found(tmp_path: Path) -> None:
    tables = healthy()
    assert _found(tmp_path / "healthy", tables, **LIMITS) == []
    for row in tables["replicas"]:
        row["batch_bytes"] += row["batch_base"] == 100
    assert _found(tmp_path / "larger", tables, **LIMITS) == [("too large", 100)]
    assert _found(tmp_path / "free", tables) == []
    cleaned = LIMITS | {"cleanup_policy": "compact"}
    assert _found(tmp_path / "cleaned", tables, **cleaned) == []


@pytest.mark.parametrize("name", ["max.message.bytes", "message.max.bytes"])
def test_limits_changed_by_an_administrator_yield_no_finding(name: str, tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["replicas"]:
        row["batch_bytes"] += row["batch_base"] == 100
    act: dict[str, Any] = {"act": "config", "subject": synthetic.TOPIC, "outcome": "ok"}
    act |= {"invoke_ns": synthetic.BEGIN_NS, "complete_ns": synthetic.BEGIN_NS + 1, "before": None}
    tables["admin_ops"] = [act | {"after": f'{{"{name}": "1000000"}}'}]
    assert _found(tmp_path, tables, **LIMITS) == []
