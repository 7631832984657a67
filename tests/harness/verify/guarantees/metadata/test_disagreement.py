"""Leader and ISR size are the same in every answer once the change had time to spread."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.verify.example_runs import alone, healthy
from urteil.harness.verify.result import Status
from urteil.harness.verify.synthetic import END_NS, S


def test_any_broker_assigns_producer_ids(tmp_path: Path) -> None:
    tables = healthy()
    answer_model, (*_, view) = tables["offset_answers"][0], tables["samples"]
    late = {"invoke_ns": view["at_ns"], "complete_ns": view["at_ns"] + 1, "error": None}
    for broker in (1, 2, 3):
        tables["offset_answers"].append(answer_model | late | {"node": broker, "offset": broker})
        tables["offset_answers"][-1]["query"] = "producer"
    assert alone("disagreement", tmp_path / "ids", tables).status is Status.HOLDS
    for row in tables["offset_answers"][-3:]:
        row["query"] = "latest"
    result = alone("disagreement", tmp_path / "ends", tables)
    assert {finding.sub_kind for finding in result.findings} == {"another leads"}


def test_epoch_reported_by_one_source_alone_is_named(tmp_path: Path) -> None:
    tables = healthy()
    old = [
        row
        for row in tables["samples"]
        if row["metric"] == "metadata_leader_epoch" and row["source"] == "b2"
    ]
    for row in old:
        row["value"] -= 1
    (finding, *_) = alone("disagreement", tmp_path, tables).findings
    assert finding.sentence.endswith("in epoch 1, but broker 2 reports epoch 0."), finding.sentence


@pytest.mark.parametrize(("sooner_s", "expected"), [(1, 0), (9, 0), (11, 1)])
def test_restarted_broker_has_ten_seconds_to_learn_leaders(
    sooner_s: int, expected: int, tmp_path: Path
) -> None:
    """Apache Kafka needed 6.7 of them on a crowded machine."""
    tables = healthy()
    views = [row for row in tables["samples"] if row["source"] == "b2"]
    for row in views:
        row["value"] = {"metadata_leader": -1.0}.get(row["metric"], row["value"] - 1)
    came = {"path": "/brokers/ids/2", "at_ns": views[0]["at_ns"] - sooner_s * S, "version": 1}
    tables["states"].append({"run": "r", "zxid": 90} | came)
    assert alone("disagreement", tmp_path, tables).violations == expected


@pytest.mark.parametrize(("target", "expected"), [("b1", 1), ("b2", 0), ("b3", 0), ("b1->b3", 0)])
def test_starved_client_during_another_brokers_absence_is_named(
    target: str, expected: int, tmp_path: Path
) -> None:
    """b3 reports no leader; b2 leads."""
    tables = healthy()
    (fault,) = tables["faults"]
    views = [row for row in tables["samples"] if row["source"] == "b3"]
    for row in views:
        row["value"] = -1.0 if row["metric"] == "metadata_leader" else row["value"]
    fault |= {"targets": f'["{target}"]', "end_ns": END_NS + 60 * S, "healed_ns": END_NS + 60 * S}
    result = alone("disagreement", tmp_path, tables)
    assert result.violations == expected


def test_source_with_too_small_an_isr_is_named(tmp_path: Path) -> None:
    tables = healthy()
    old = [
        row
        for row in tables["samples"]
        if row["metric"] == "metadata_in_sync" and row["source"] == "b2"
    ]
    for row in old:
        row["value"] -= 1
    (finding, *_) = alone("disagreement", tmp_path, tables).findings
    assert finding.sub_kind == "in sync"
    assert finding.sentence.endswith("have been in sync for long, but broker 2 reports 2."), (
        finding.sentence
    )
