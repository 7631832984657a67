"""Leadership returns to preferred replicas, and a broker hands over its leaderships before it shuts
down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, healthy
from urteil.harness.scenario import ClusterSpec, Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.derived.admin_tasks import admin_task_rows
from urteil.harness.verify.derived.small_evidence import read
from urteil.harness.verify.evidence import Row
from urteil.harness.verify.synthetic import BEGIN_NS, CRASH_NS, END_NS, TOPIC, TOPIC_ID, S

MENDED = {
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "1",
    "leader.imbalance.per.broker.percentage": "0",
}
LED = healthy()["states"][2]["leader"]
"""The leader from the crash's end on; all three replicas are in sync."""
OTHERS = tuple(broker for broker in (1, 2, 3) if broker != LED)
LEFT_NS = END_NS + 3 * S
PRESENT: dict[str, Any] = {"version": 0, "at_ns": CRASH_NS - S}
BROKERS = tuple(PRESENT | {"path": f"/brokers/ids/{broker}"} for broker in (1, 2, 3))
LEFT = {"path": f"/brokers/ids/{LED}", "version": -1, "at_ns": LEFT_NS}
POLITE = {"fault": "shutdown", "targets": f'["b{LED}"]', "proof": "pid 7 is gone, exit 143",
          "begin_ns": LEFT_NS - S, "end_ns": LEFT_NS + S, "healed_ns": LEFT_NS + S}  # fmt: skip


def _judged(
    run_dir: Path,
    *nodes: dict[str, Any],
    replicas: tuple[int, ...] = (1, 2, 3),
    settings: dict[str, str] | None = None,
    ops: tuple[dict[str, Any], ...] = (),
    fault: dict[str, Any] | None = None,
    isr: tuple[int, ...] = (1, 2, 3),
) -> list[Row]:
    """The late tasks of a run with these versions of znodes, beside those of its partition, and one
    fault."""
    tables = healthy()
    blank = dict.fromkeys(tables["states"][0])
    topic = {"path": f"/brokers/topics/{TOPIC}", "topic": TOPIC, "topic_id": TOPIC_ID}
    topic |= PRESENT | {"replicas": json.dumps({"0": replicas})}
    tables["states"][2]["isr"] = json.dumps(isr)
    for n, node in enumerate((topic, *BROKERS)):
        tables["states"].append(blank | {"zxid": 1 + n} | node)
    for row in tables["states"]:
        row["zxid"] += 1000 * (row["at_ns"] > LEFT_NS)
    for n, node in enumerate(nodes):
        tables["states"].append(blank | {"zxid": 900 + n} | node)
    tables["admin_ops"] = list(ops)
    tables["faults"][0].update(fault or {})
    cluster = ClusterSpec(config=settings or {})
    scenario = synthetic.scenario(ONE, recovery_deadline_s=5.0, cluster=cluster)
    phases = [Phase(name="during", begin_ns=CRASH_NS, end_ns=END_NS + 7 * S),
              Phase(name="final", begin_ns=END_NS + 7 * S, end_ns=END_NS + 60 * S)]  # fmt: skip
    facts = synthetic.facts(ONE, phases=phases)
    synthetic.write_run(run_dir, tables, scenario, facts)
    late = [row for row in admin_task_rows(read(run_dir, facts), scenario, facts) if row["late"]]
    return [row for row in late if row["kind"] != "fell out"]


def test_leadership_has_to_go_back(tmp_path: Path) -> None:
    (late,) = _judged(tmp_path, replicas=(*OTHERS, LED), settings=MENDED)
    assert late["kind"] == "not given back"
    assert late["task"] == f"urteil-0 must be led by broker {OTHERS[0]}, its first replica"
    assert late["shortfall"] == f"broker {LED} leads"


@pytest.mark.parametrize(
    "more",
    [
        {"replicas": (LED, *OTHERS)},
        {"settings": {}},
        {"settings": MENDED | {"leader.imbalance.per.broker.percentage": "100"}},
        {"settings": MENDED | {"leader.imbalance.check.interval.seconds": "60"}},
        {"isr": (LED, OTHERS[1])},
        {"nodes": (PRESENT | {"path": "/controller", "at_ns": END_NS},)},
        {"ops": ({"act": "reassign", "subject": TOPIC, "outcome": "ok", "invoke_ns": BEGIN_NS,
                  "complete_ns": BEGIN_NS, "before": "{}", "after": "{}"},)},
    ],
    ids=["led", "off", "not too much", "seldom", "not in sync", "new controller", "moved"],
)  # fmt: skip
def test_leadership_may_stay(more: dict[str, Any], tmp_path: Path) -> None:
    asked: dict[str, Any] = {"replicas": (*OTHERS, LED), "settings": MENDED} | more
    assert not _judged(tmp_path, *asked.pop("nodes", ()), **asked)


def test_broker_hands_over_before_a_clean_stop(tmp_path: Path) -> None:
    (late,) = _judged(tmp_path, LEFT, fault=POLITE)
    assert late["kind"] == "not handed over"
    assert late["task"].startswith(f"Broker {LED}, which shut down cleanly")
    assert f"with {list(OTHERS)} in sync" in late["shortfall"]


@pytest.mark.parametrize(
    ("nodes", "more"),
    [
        ((LEFT,), {"fault": POLITE | {"fault": "crash"}}),
        ((LEFT,), {"fault": POLITE | {"proof": "b1: pid 7 ended, exit -9"}}),
        ((LEFT,), {"fault": POLITE | {"targets": f'["b{OTHERS[0]}"]'}}),
        ((LEFT,), {"fault": POLITE | {"targets": '["b1", "b2", "b3"]'}}),
        ((LEFT | {"path": f"/brokers/ids/{OTHERS[0]}"},), {"fault": POLITE}),
        ((LEFT,), {"fault": POLITE, "isr": (LED,)}),
        ((PRESENT | {"path": "/controller", "at_ns": LEFT_NS - S}, LEFT), {"fault": POLITE}),
    ],
    ids=[
        "died",
        "was killed",
        "another",
        "all at once",
        "a follower",
        "nobody else",
        "new controller",
    ],
)
def test_stop_without_a_duty_to_hand_over_yields_no_finding(
    nodes: tuple[dict[str, Any], ...], more: dict[str, Any], tmp_path: Path
) -> None:
    assert not _judged(tmp_path, *nodes, **more)
