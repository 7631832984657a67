"""A partition without a leader is found if an eligible replica lived."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, alone, healthy
from urteil.harness.scenario import ClusterSpec, Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult
from urteil.harness.verify.synthetic import BEGIN_NS, END_NS, TOPIC, S

AWAY_NS, UNTIL_NS = END_NS + 10 * S, END_NS + 60 * S
LED = healthy()["states"][-1]["leader"]
OTHERS = tuple(broker for broker in (1, 2, 3) if broker != LED)
BROKERS = tuple({"path": f"/brokers/ids/{broker}", "at_ns": BEGIN_NS} for broker in (1, 2, 3))
CONTROLLER = {"path": "/controller", "at_ns": BEGIN_NS}
DEPARTED = {"path": f"/brokers/ids/{LED}", "version": -1, "at_ns": AWAY_NS}
ALLOWED: dict[str, Any] = {
    "act": "config", "subject": TOPIC, "outcome": "ok", "invoke_ns": AWAY_NS + S,
    "complete_ns": AWAY_NS + 2 * S, "before": "{}",
    "after": json.dumps({"unclean.leader.election.enable": "true"}),
}  # fmt: skip
FORBIDDEN = ALLOWED | {"invoke_ns": AWAY_NS + 9 * S, "complete_ns": AWAY_NS + 9 * S,
                       "after": json.dumps({"unclean.leader.election.enable": None})}  # fmt: skip


def _judged(
    run_dir: Path,
    *,
    isr: tuple[int, ...] = (LED,),
    nodes: tuple[dict[str, Any], ...] = (DEPARTED,),
    ops: tuple[dict[str, Any], ...] = (),
    settings: dict[str, str] | None = None,
    until_ns: int = UNTIL_NS,
    target: str = "urteil",
    **fault: Any,
) -> GuaranteeResult:
    """A run whose partition lost its leader after the load's records, with this ISR."""
    tables = healthy()
    last = tables["states"][-1]
    blank = dict.fromkeys(last) | {"version": 0}
    for zxid, node in enumerate((*BROKERS, CONTROLLER, *nodes), start=1):
        tables["states"].append(blank | {"zxid": zxid + last["zxid"]} | node)
    lost = {"leader": -1, "leader_epoch": last["leader_epoch"] + 1, "at_ns": AWAY_NS + S}
    lost |= {"isr": json.dumps(isr), "replicas": "[1, 2, 3]", "version": last["version"] + 1}
    tables["states"].append(last | lost | {"zxid": last["zxid"] + 100})
    tables["admin_ops"] = list(ops)
    tables["faults"][0].update(fault)
    cluster = ClusterSpec(config=settings or {}, controllers=3)
    scenario = synthetic.scenario(ONE, recovery_deadline_s=90.0, cluster=cluster, target=target)
    facts = synthetic.facts(ONE, phases=[Phase(name="during", begin_ns=BEGIN_NS, end_ns=until_ns)])
    return alone("leaderless_partition", run_dir, tables, scenario=scenario, facts=facts)


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({"isr": (LED, OTHERS[0])}, 49),
        ({"ops": (ALLOWED,)}, 48),
        ({"settings": {"unclean.leader.election.enable": "true"}}, 49),
    ],
    ids=["in sync", "allowed", "always allowed"],
)
def test_eligible_replica_leads(more: dict[str, Any], seconds: int, tmp_path: Path) -> None:
    (finding,) = _judged(tmp_path, **more).findings
    assert finding.sub_kind == "leaderless"
    expected = f"Broker {OTHERS[0]} could have led urteil-0, but it had no leader, for {seconds} s."
    assert finding.sentence == expected


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"isr": (LED, OTHERS[0]), "until_ns": AWAY_NS + 15 * S},
        {"isr": (LED, OTHERS[0]), "fault": "partition", "begin_ns": AWAY_NS, "end_ns": UNTIL_NS,
         "healed_ns": UNTIL_NS},
        {"isr": (LED, OTHERS[0]), "fault": "crash", "targets": f'["b{OTHERS[0]}"]',
         "begin_ns": AWAY_NS, "end_ns": UNTIL_NS, "healed_ns": UNTIL_NS},
        {"isr": (LED, OTHERS[0]), "nodes": (DEPARTED, DEPARTED | {"path": "/controller"})},
        {"isr": (LED, OTHERS[0]),
         "nodes": (DEPARTED, DEPARTED | {"path": f"/brokers/ids/{OTHERS[0]}"})},
        {"ops": (ALLOWED | {"outcome": "info"},)},
        {"ops": (ALLOWED | {"subject": "other"},)},
        {"ops": (ALLOWED, FORBIDDEN)},
    ],
    ids=["nobody", "not for long", "cut off", "dies itself", "no controller", "all gone",
         "not known", "another topic", "forbidden again"],
)  # fmt: skip
def test_partition_without_a_possible_leader_yields_no_finding(
    more: dict[str, Any], tmp_path: Path
) -> None:
    assert not _judged(tmp_path, **more).findings


def test_crash_of_another_broker_is_no_excuse(tmp_path: Path) -> None:
    result = _judged(tmp_path, isr=(LED, OTHERS[0]), fault="crash", targets=f'["b{LED}"]',
                     begin_ns=AWAY_NS, end_ns=UNTIL_NS, healed_ns=UNTIL_NS)  # fmt: skip
    assert [finding.sub_kind for finding in result.findings] == ["leaderless"]


@pytest.mark.parametrize(("dead", "is_found"), [(["q1"], True), (["q1", "q2"], False)])
def test_quorum_without_a_majority_elects_no_leader(
    dead: list[str], is_found: bool, tmp_path: Path
) -> None:
    result = _judged(
        tmp_path, isr=(LED, OTHERS[0]), target="kafka:4.1.2", fault="crash",
        targets=json.dumps(dead), begin_ns=AWAY_NS, end_ns=UNTIL_NS, healed_ns=UNTIL_NS,
    )  # fmt: skip
    assert bool(result.findings) is is_found


OTHER = {"topic": "other", "topic_id": "other", "partition": 0, "path": "other"}
"""A partition of another topic that the same broker led."""


def _judged_after_departure(
    run_dir: Path, *, led_after_s: float, nodes: tuple[dict[str, Any], ...] = (), **fault: Any
) -> GuaranteeResult:
    """A run in which a leader left. The other partition that it led has another leader after 0.1 s,
    the partition of the run after `led_after_s`."""
    tables = healthy()
    last = tables["states"][-1]
    blank = dict.fromkeys(last) | {"version": 0}
    state = last | {"isr": json.dumps([LED, OTHERS[0]]), "at_ns": AWAY_NS - 5 * S}
    elected = {"leader": OTHERS[0], "leader_epoch": last["leader_epoch"] + 1}
    rows = [
        *(blank | node for node in (*BROKERS, CONTROLLER)), state, state | OTHER, blank | DEPARTED,
        *(blank | node for node in nodes), state | OTHER | elected | {"at_ns": AWAY_NS + S // 10},
        state | elected | {"at_ns": AWAY_NS + int(led_after_s * S)},
    ]  # fmt: skip
    for number, row in enumerate(rows, start=1):
        tables["states"].append(row | {"zxid": last["zxid"] + number})
    tables["faults"][0].update(fault)
    facts = synthetic.facts(ONE, phases=[Phase(name="during", begin_ns=BEGIN_NS, end_ns=UNTIL_NS)])
    scenario = synthetic.scenario(ONE)
    return alone("leaderless_partition", run_dir, tables, scenario=scenario, facts=facts)


def test_partition_passed_over_by_elections_is_found(tmp_path: Path) -> None:
    (finding,) = _judged_after_departure(tmp_path, led_after_s=7).findings
    assert finding.sub_kind == "passed over"
    assert finding.sentence == (
        f"Broker {LED} had left, other partitions that it led had another leader, and urteil-0 had "
        "an eligible replica in sync, too, but it had no leader, for 7 s."
    )


@pytest.mark.parametrize(
    "more",
    [
        {"led_after_s": 0.2},
        {"led_after_s": 2.9},
        {"led_after_s": 7, "nodes": ({"path": "/controller", "at_ns": AWAY_NS + S},)},
        {"led_after_s": 7, "nodes": ({"path": f"/brokers/ids/{OTHERS[0]}", "version": -1,
                                      "at_ns": AWAY_NS + S},)},
        {"led_after_s": 7, "fault": "partition", "begin_ns": AWAY_NS + S, "end_ns": UNTIL_NS,
         "healed_ns": UNTIL_NS},
        {"led_after_s": 7, "fault": "disk_full", "begin_ns": BEGIN_NS, "end_ns": BEGIN_NS + S,
         "healed_ns": BEGIN_NS + S},
    ],
    ids=["at once", "in time", "new controller", "replica left", "fault", "disk was hurt"],
)  # fmt: skip
def test_late_election_that_something_delays_yields_no_finding(
    more: dict[str, Any], tmp_path: Path
) -> None:
    assert not _judged_after_departure(tmp_path, **more).findings


def test_partition_whose_leader_left_is_leaderless(tmp_path: Path) -> None:
    """The broker led no other partition, so the limit is that of a partition without a leader."""
    tables = healthy()
    last = tables["states"][-1]
    blank = dict.fromkeys(last) | {"version": 0}
    for number, node in enumerate((*BROKERS, CONTROLLER, DEPARTED), start=1):
        tables["states"].append(blank | node | {"zxid": last["zxid"] + number})
    facts = synthetic.facts(ONE, phases=[Phase(name="during", begin_ns=BEGIN_NS, end_ns=UNTIL_NS)])
    result = alone("leaderless_partition", tmp_path, tables, scenario=synthetic.scenario(ONE),
                   facts=facts)  # fmt: skip
    assert [finding.sub_kind for finding in result.findings] == ["leaderless"]
