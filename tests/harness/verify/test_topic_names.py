"""Evidence that has only a topic's name belongs to the topic of that name at that time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.verify.example_runs import ONE, alone, healthy
from urteil.harness.scenario import Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import Status
from urteil.harness.verify.synthetic import END_NS, TOPIC, S

START = 60


@pytest.mark.parametrize(
    ("subject", "is_ours"),
    [
        *((TOPIC, True), (f"{TOPIC}-0", True), (f"other, {TOPIC}", True), (f"{TOPIC}:0", True)),
        *((f"{TOPIC}-out", False), (f"my.{TOPIC}", False), (f"{TOPIC}.dlq", False)),
        *((f"{TOPIC}2", False), (f"old-{TOPIC}", False), (f"{TOPIC}-out-0", False)),
    ],
)
def test_deleted_records_of_one_topic_excuse_no_other(
    subject: str, is_ours: bool, tmp_path: Path
) -> None:
    tables = healthy()
    for row in tables["logs"]:
        row["log_start"] = START
    offsets = {"offsets": {"0": START}, "low_watermarks": {"0": START}}
    tables.setdefault("admin_ops", []).append(
        {"run": "r", "act": "delete records", "subject": subject, "outcome": "ok", "before": "{}"}
        | {"after": json.dumps(offsets), "invoke_ns": END_NS, "complete_ns": END_NS + S}
    )
    result = alone("retained_too_short", tmp_path, tables)
    assert result.violations == (0 if is_ours else START)


@pytest.mark.parametrize(("before_s", "status"), [(9, Status.HOLDS), (1, Status.VIOLATED)])
def test_leader_of_an_earlier_topic_of_that_name_is_ignored(
    before_s: int, status: Status, tmp_path: Path
) -> None:
    """Samples of a deleted topic do not concern the leader of its successor."""
    tables = healthy()
    made_ns = min(row["at_ns"] for row in tables["states"])
    labels = json.dumps({"topic": TOPIC, "partition": 0})
    fields = {"metadata_leader": 2.0, "metadata_leader_epoch": 9.0}
    tables["samples"] += [
        {"run": "r", "at_ns": made_ns - before_s * S, "source": "b1", "labels": labels}
        | {"metric": metric, "value": value}
        for metric, value in fields.items()
    ]
    phases = [Phase(name="before", begin_ns=0, end_ns=END_NS)]
    facts = synthetic.facts(ONE, phases=phases)
    assert alone("two_leaders", tmp_path, tables, facts=facts).status is status
