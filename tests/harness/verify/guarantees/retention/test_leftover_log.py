"""Files that should have been deleted are found, if nothing prevented their deletion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, alone, healthy
from urteil.harness.evidence.readers.deleted_files import METRIC
from urteil.harness.scenario import ClusterSpec, Scenario
from urteil.harness.verify import synthetic
from urteil.harness.verify.derived.leftovers import leftover_rows
from urteil.harness.verify.derived.small_evidence import read
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.synthetic import BEGIN_NS, END_NS, TOPIC, TOPIC_ID, S

SOON = {"log.segment.delete.delay.ms": "1000", "log.initial.task.delay.ms": "1000"}
MOVED_NS = END_NS + 10 * S
NODE = {"path": f"/brokers/topics/{TOPIC}", "topic": TOPIC, "topic_id": TOPIC_ID, "version": 0}
STRAY = {"file": f"nodes/b4/data/{TOPIC}-0", "kind": "stray_log", "rows": 0, "ended_properly": True}


def _rows(*nodes: dict[str, Any], **tables: list[dict[str, Any]]) -> dict[str, Any]:
    evidence = healthy()
    blank = dict.fromkeys(evidence["states"][0])
    here = [{"path": f"/brokers/ids/{n}", "version": 0, "at_ns": BEGIN_NS} for n in (1, 2, 3, 4)]
    for n, node in enumerate((*here, *nodes)):
        evidence["states"].append(blank | {"zxid": 1 + n} | node)
    for name, rows in tables.items():
        evidence[name] = [*evidence.get(name, []), *({"run": "r"} | row for row in rows)]
    return evidence


def _scenario(**config: str) -> Scenario:
    return synthetic.scenario(ONE, cluster=ClusterSpec(config=config))


def _late(run_dir: Path, tables: dict[str, Any], scenario: Scenario | None = None) -> list[Row]:
    asked, facts = scenario or _scenario(**SOON), synthetic.facts(ONE)
    synthetic.write_run(run_dir, tables, asked, facts)
    rows = leftover_rows(run_dir, read(run_dir, facts), asked, facts)
    return [row for row in rows if row["late"]]


def _on(*brokers: int, at_ns: int) -> dict[str, Any]:
    return NODE | {"replicas": json.dumps({"0": brokers}), "at_ns": at_ns}


def _moved(*more: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return (_on(1, 2, 4, at_ns=BEGIN_NS), _on(1, 2, 3, at_ns=MOVED_NS), *more)


def test_log_of_a_former_replica_is_a_violation(tmp_path: Path) -> None:
    (late,) = _late(tmp_path, _rows(*_moved(), manifest=[STRAY]))
    assert (late["kind"], late["broker"], late["name"]) == ("moved", 4, f"{TOPIC}-0")
    assert late["age_s"] == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("nodes", "stray"),
    [
        (_moved(), STRAY | {"kind": "replica_log"}),
        (_moved({"path": "/brokers/ids/4", "version": -1, "at_ns": MOVED_NS + S}), STRAY),
        (_moved({"path": "/controller", "version": 0, "at_ns": MOVED_NS - S}), STRAY),
        (_moved(_on(1, 2, 4, at_ns=MOVED_NS + S)), STRAY),
        ((_on(1, 2, 4, at_ns=BEGIN_NS), _on(1, 2, 3, at_ns=END_NS + 55 * S)), STRAY),
    ],
    ids=["gone", "broker left", "new controller", "came back", "just now"],
)
def test_log_of_a_replica_yields_no_leftover(
    nodes: tuple[dict[str, Any], ...], stray: dict[str, Any], tmp_path: Path
) -> None:
    assert not _late(tmp_path, _rows(*nodes, manifest=[stray]))


def _aside(path: str, age_s: float) -> dict[str, Any]:
    labels = json.dumps({"path": path})
    return {"at_ns": END_NS, "source": "b4", "metric": METRIC, "labels": labels, "value": age_s}


FOLDER, FILE = "old-0.0123456789abcdef-delete", f"{TOPIC}-0/00.log.deleted"


@pytest.mark.parametrize(
    ("path", "age_s", "config", "is_late"),
    [
        (FOLDER, 30.0, SOON, True),
        (FOLDER, 16.0, SOON, False),
        (FOLDER, 80.0, {}, False),
        (FILE, 30.0, SOON, True),
        (FILE, 30.0, {}, False),
    ],
)
def test_directory_marked_for_deletion_must_disappear(
    path: str, age_s: float, config: dict[str, str], *, is_late: bool, tmp_path: Path
) -> None:
    tables = _rows(samples=[_aside(path, age_s)])
    assert bool(_late(tmp_path, tables, _scenario(**config))) is is_late


def test_restart_resets_broker_samples(tmp_path: Path) -> None:
    again = {"path": "/brokers/ids/4", "version": 0, "at_ns": END_NS + 50 * S}
    assert not _late(tmp_path, _rows(again, samples=[_aside(FOLDER, 300.0)]))


@pytest.mark.parametrize("fault", ["disk_readonly", "clock_drift"])
def test_failed_disk_or_clock_excuses_its_broker(fault: str, tmp_path: Path) -> None:
    tables = _rows(samples=[_aside(FOLDER, 30.0)])
    tables["faults"][0] |= {"fault": fault, "targets": '["b4"]'}
    assert not _late(tmp_path, tables)


def test_logs_of_a_deleted_topic_are_leftovers(tmp_path: Path) -> None:
    tables = _rows()
    gone = tables["states"][0] | {"zxid": 10_000, "version": -1, "at_ns": END_NS + 30 * S}
    tables["states"].append(gone | dict.fromkeys(("leader", "leader_epoch", "isr")))
    assert [row["broker"] for row in _late(tmp_path, tables)] == [1, 2, 3]


def test_leftovers_are_findings(tmp_path: Path) -> None:
    tables = _rows(*_moved(), manifest=[STRAY], samples=[_aside(FOLDER, 30.0)])
    result = alone("leftover_log", tmp_path, tables, scenario=_scenario(**SOON))
    sentences = "\n".join(finding.sentence for finding in result.findings)
    assert f"Broker 4 still has the log of {TOPIC}-0, 50 s after it left the replicas" in sentences
    assert f"Broker 4 marked {FOLDER} for deletion 30 s before the broker ended" in sentences
