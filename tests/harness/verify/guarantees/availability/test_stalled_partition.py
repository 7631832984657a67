"""A partition that acknowledges nothing, and a producer that receives no answer, are found unless
the faults of that moment explain it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify.example_runs import ONE, alone, healthy
from urteil.chaos.effects import Effect
from urteil.harness.scenario import ClusterSpec, Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import BEGIN_NS, END_NS, S

LED = healthy()["states"][-1]["leader"]
FOLLOWER, CONTROLLER = (broker for broker in (1, 2, 3) if broker != LED)
BEGUN_NS, OVER_NS = END_NS + S, END_NS + 40 * S
CUT = {
    "effects": [Effect.CUTS_LINKS], "targets": [f"b{FOLLOWER}->b{LED}"],
    "begin_ns": BEGUN_NS, "end_ns": OVER_NS,
}  # fmt: skip
CLOCK = CUT | {"effects": [Effect.MOVES_CLOCKS], "targets": [f"b{LED}"]}


def _judged(
    run_dir: Path,
    *faults: dict[str, Any],
    guarantee: str = "stalled_partition",
    producers: int = 2,
    states: tuple[dict[str, Any], ...] = (),
    target: str = "urteil",
    cluster: ClusterSpec | None = None,
) -> GuaranteeResult:
    """A run that acknowledges nothing after its records, though producers wait."""
    tables = healthy()
    last, send = tables["states"][-1], tables["sends"][-1]
    blank = dict.fromkeys(last) | {"version": 0, "at_ns": BEGIN_NS}
    nodes = [{"path": f"/brokers/ids/{broker}"} for broker in (1, 2, 3)]
    nodes += [{"path": "/controller", "controller": CONTROLLER}, *states]
    for number, node in enumerate(nodes, start=1):
        base = last if "isr" in node else blank
        tables["states"].append(base | {"zxid": last["zxid"] + number} | node)
    client = next(row for row in tables["clients"] if row["kind"] == "producer")
    for number in range(producers):
        who = {"client": f"waiting{number}", "session": 0}
        life = {"begin_ns": BEGIN_NS, "end_ns": OVER_NS, "transactional_id": None}
        tables["clients"].append(client | who | life)
        waiting = {"value_id": f"r/waiting{number}/0", "outcome": "info", "offset": None, "op": 0}
        times = {"invoke_ns": BEGUN_NS, "complete_ns": None}
        tables["sends"].append(send | who | waiting | times)
    model = tables["faults"].pop() if faults else {}
    for fault in faults:
        texts = {name: json.dumps(fault[name]) for name in ("effects", "targets")}
        ends = {"healed_ns": fault["end_ns"], "acted": True}
        tables["faults"].append(model | fault | texts | ends)
    phases = [Phase(name="during", begin_ns=BEGIN_NS, end_ns=OVER_NS)]
    facts = synthetic.facts(ONE, phases=phases, target=target)
    changes = {"cluster": cluster} if cluster else {}
    scenario = synthetic.scenario(ONE, target=target, **changes)
    return alone(guarantee, run_dir, tables, scenario=scenario, facts=facts)


@pytest.mark.parametrize(
    "faults",
    [
        (),
        (CUT,),
        (CLOCK, CUT),
        (CUT | {"effects": [Effect.KILLS_NODES], "targets": [f"b{FOLLOWER}"]},),
        (CUT | {"targets": [f"b{CONTROLLER}->b{LED}"]},),
        (CUT | {"targets": [f"b{FOLLOWER}->zk1", f"client->b{FOLLOWER}"]},),
    ],
    ids=["no fault", "follower cut off", "wrong clock", "follower dead", "controller cut off",
         "follower isolated"],
)  # fmt: skip
def test_stall_that_no_fault_explains_is_a_violation(
    faults: tuple[dict[str, Any], ...], tmp_path: Path
) -> None:
    result = _judged(tmp_path / "two", *faults)
    assert result.status is Status.VIOLATED
    (finding,) = result.findings
    assert finding.sub_kind == "stalled"
    assert "urteil-0 acknowledged nothing for" in finding.sentence
    assert "although 2 producers tried" in finding.sentence

    result = _judged(tmp_path / "one", *faults, guarantee="stalled_producer", producers=1)
    assert result.status is Status.VIOLATED
    (finding,) = result.findings
    assert finding.sub_kind == "unanswered"
    assert "waiting0 waited" in finding.sentence
    assert "for answers to 1 record of urteil-0." in finding.sentence


@pytest.mark.parametrize(
    "more",
    [
        {"faults": (CUT | {"targets": [f"b{LED}->zk1"]},)},
        {"faults": (CUT | {"targets": [f"client->b{LED}"]},)},
        {"faults": (CUT | {"targets": [f"b{LED}->b{CONTROLLER}"]},)},
        {"faults": (CUT | {"effects": [Effect.SLOWS_LINKS]},)},
        {"faults": (CUT | {"effects": [Effect.PAUSES_NODES], "targets": [f"b{LED}"]},)},
        {"faults": (CUT | {"effects": [Effect.FILLS_DISKS], "end_ns": BEGUN_NS + S},)},
        {"producers": 1},
        {"states": ({"isr": f"[{LED}]", "at_ns": BEGUN_NS},)},
        {"states": ({"path": "/controller", "version": -1, "at_ns": BEGUN_NS},)},
        {"states": ({"path": f"/brokers/ids/{LED}", "version": -1, "at_ns": BEGUN_NS},)},
        {"states": tuple({"isr": "[1, 2, 3]", "at_ns": BEGUN_NS + n * S} for n in range(0, 40, 8))},
    ],
    ids=["no metadata", "no clients", "no controller", "slow link", "leader paused",
         "disk was full", "one producer", "too small an ISR", "none in office", "leader left",
         "states change"],
)  # fmt: skip
def test_stall_that_is_explained_yields_no_finding(more: dict[str, Any], tmp_path: Path) -> None:
    faults = more.pop("faults", ())
    assert not _judged(tmp_path / "partition", *faults, **more).findings
    if "producers" not in more:
        producer = _judged(tmp_path / "producer", *faults, guarantee="stalled_producer", **more)
        assert not producer.findings


def test_moved_clock_permits_a_stall_of_a_broker_using_it(tmp_path: Path) -> None:
    assert _judged(tmp_path / "moved", CLOCK, CUT, target="kafka").status is Status.PERMITTED
    assert _judged(tmp_path / "right", CUT, target="kafka").status is Status.VIOLATED


@pytest.mark.parametrize(("brokers", "is_judged"), [(3, True), (2, False)])
def test_stall_without_a_majority_of_the_quorum_yields_no_finding(
    brokers: int, is_judged: bool, tmp_path: Path
) -> None:
    """In KRaft the leader cannot shrink its ISR then, though the controller is alive."""
    dead = CUT | {"effects": [Effect.KILLS_NODES], "targets": [f"b{FOLLOWER}"]}
    cluster = msgspec.structs.replace(synthetic.scenario(ONE).cluster, brokers=brokers)
    for guarantee in ("stalled_partition", "stalled_producer"):
        result = _judged(
            tmp_path / guarantee, dead, guarantee=guarantee, target="kafka:4.1.2", cluster=cluster
        )
        assert bool(result.findings) is is_judged
