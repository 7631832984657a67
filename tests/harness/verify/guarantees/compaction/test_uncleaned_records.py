"""Records that were overwritten long ago are cleaned, where they are known to be overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy, topic
from urteil.harness.scenario import Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.synthetic import END_NS, S

FIRST, COUNT = 300, 20
"""From here on records in transactions overwrite the keys of as many records before; all other keys
are unique."""


def key(offset: int) -> str:
    return f"k{offset - COUNT if FIRST <= offset < FIRST + COUNT else offset}"


def not_cleaned(run_dir: Path, tables: Tables) -> set[int | None]:
    """Offsets that stayed for too long."""
    config = {"cleanup_policy": "compact", "max_compaction_lag_ms": "1000"}
    phases = [Phase(name="during", begin_ns=0, end_ns=END_NS + 60 * S)]
    facts = synthetic.facts(ONE, topics=topic(**config), phases=phases)
    findings = alone("stale_value_visible", run_dir, tables, facts=facts).findings
    return {finding.offset for finding in findings if finding.sub_kind == "not cleaned"}


@pytest.mark.parametrize(("outcome", "stayed"), [("committed", COUNT), ("unknown", 0)])
def test_records_overwritten_by_unknown_transactions_may_remain(
    outcome: str, stayed: int, tmp_path: Path
) -> None:
    tables = healthy()
    for log in tables["logs"]:
        log["active_base"] = ONE.records
    for table in ("sends", "reads", "replicas"):
        for row in tables[table]:
            row["key"] = key(row["offset"])
    for send in tables["sends"]:
        send["txn"] = 0 if FIRST <= send["offset"] < FIRST + COUNT else None
    times = [row[name] for row in tables["sends"] for name in ("invoke_ns", "complete_ns")]
    tables["txns"] = [
        {"run": "r", "client": client, "session": 0, "txn": 0, "transactional_id": client}
        | {"begin_ns": min(times), "commit_invoke_ns": max(times), "end_ns": max(times)}
        | {"init_invoke_ns": min(times), "init_ns": min(times), "outcome": outcome}
        for client in ("p0", "p1")
    ]
    assert not_cleaned(tmp_path, tables) == set(range(FIRST - stayed, FIRST))
