"""Copies of the records of one key keep their order."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import pytest

from tests.harness.verify.guarantees.groups.test_group_guarantees import healthy, judge
from tests.harness.verify.guarantees.transactions.test_pipeline_guarantees import ONE, OUT, copied
from urteil.harness.clients import applications
from urteil.harness.clients.applications.pipeline import APPLICATION
from urteil.harness.scenario import TopicFact
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult, Status


@pytest.fixture(autouse=True)
def _ordered_copier(monkeypatch: pytest.MonkeyPatch) -> None:
    """An application that promises order."""
    ordered = dataclasses.replace(APPLICATION, name="ordered", is_ordered=True)
    lax = dataclasses.replace(APPLICATION, name="lax")
    monkeypatch.setattr(applications, "applications", lambda: {"ordered": ordered, "lax": lax})


def judged(run_dir: Path, values: list[str], application: str = "ordered") -> GuaranteeResult:
    tables = copied(values)
    log = {"broker": 1, "log_start": 0, "log_end": len(values), "high_watermark": len(values)}
    tables["logs"].append(OUT | log | {"recovery_point": 0, "epochs": "{}"})
    tables["replicas"] += [
        OUT | {"broker": 1, "offset": offset, "value_id": f"copy/{value}", "intact": True}
        for offset, value in enumerate(values)
    ]
    scenario, facts = synthetic.scenario(ONE), synthetic.facts(ONE)
    facts.topics.append(
        TopicFact(name="urteil-out", topic_id="out", partitions=1, replication_factor=1,
                  copies=True)
    )  # fmt: skip
    load = msgspec.structs.replace(
        scenario.workload, kind="application", options={"application": application}
    )
    scenario = msgspec.structs.replace(scenario, workload=load)
    return judge(run_dir, tables, scenario, facts, ("reordered_copy",))["reordered_copy"]


def _sent() -> tuple[list[str], list[str]]:
    """All values in the order of the input, and the first two of one key."""
    sends = sorted(healthy()["sends"], key=lambda row: row["offset"])
    first = sends[0]
    second = next(row for row in sends[1:] if row["key"] == first["key"])
    return [row["value_id"] for row in sends], [first["value_id"], second["value_id"]]


def test_copies_in_the_order_of_their_records_hold(tmp_path: Path) -> None:
    result = judged(tmp_path, _sent()[0])
    assert (result.status, result.opportunities > 100) == (Status.HOLDS, True)


def test_copies_of_one_key_in_reverse_are_a_violation(tmp_path: Path) -> None:
    values, (earlier, later) = _sent()
    at, behind = values.index(earlier), values.index(later)
    values[at], values[behind] = later, earlier
    result = judged(tmp_path / "ordered", values)
    assert result.status is Status.VIOLATED
    assert any(
        f"the copy of {later} at" in finding.sentence and earlier in finding.sentence
        for finding in result.findings
    )
    assert judged(tmp_path / "lax", values, "lax").status is Status.NOT_JUDGED


def test_copies_that_are_repeated_behind_later_ones_hold(tmp_path: Path) -> None:
    values = _sent()[0]
    assert judged(tmp_path, values[:200] + values[150:]).status is Status.HOLDS
