"""The cost of a fault, and whether it may be judged for progress and recovery."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, copy_of, healthy, judged, named
from urteil.harness import host_load
from urteil.harness.scenario import ClusterSpec
from urteil.harness.verify import synthetic
from urteil.harness.verify.damage import DAMAGES
from urteil.harness.verify.derived.impact import healthy_again_ns, longest_gap_s
from urteil.harness.verify.derived.intervals import Interval
from urteil.harness.verify.limits import FOREVER_NS
from urteil.harness.verify.result import Status, Verdict
from urteil.harness.verify.synthetic import BEGIN_NS, CRASH_NS, END_NS, HEALED_NS, RUN, S


def test_the_gap_that_overlaps_a_fault_counts_and_no_other() -> None:
    beats = [(0, 1 * S), (9 * S, 10 * S), (12 * S, 20 * S), (40 * S, 41 * S)]
    assert longest_gap_s(beats, Interval(10 * S, 13 * S)) == 2.0
    assert longest_gap_s(beats, Interval(2 * S, 13 * S)) == 8.0
    assert longest_gap_s([], Interval(0, 1)) is None


def test_recovery_ends_with_the_last_unhealthy_state() -> None:
    bad = [Interval(10, 20), Interval(30, FOREVER_NS)]
    assert healthy_again_ns(bad, 5) == 5
    assert healthy_again_ns(bad, 15) == 20
    assert healthy_again_ns(bad, 35) is None


@pytest.mark.usefixtures("few")
def test_recovery_time_of_a_crash_is_measured(tmp_path: Path) -> None:
    (fault,) = judged(tmp_path, healthy()).faults
    assert fault.unavailable_s == pytest.approx(2.07, abs=0.01)
    assert fault.recovery_s == 1.0


@pytest.mark.parametrize("members", ["[1, 2]", "[1, 2, 3]"])
def test_topic_that_a_fault_created_is_part_of_its_recovery(members: str, tmp_path: Path) -> None:
    """The others that are not of the run are not."""
    tables = healthy()
    last = tables["states"][-1]
    for number, topic in enumerate(("anew", "another"), start=1):
        isr = members if topic == "anew" else "[1]"
        tables["states"].append(
            last | {"topic": topic, "topic_id": topic, "path": topic, "isr": isr, "version": 0}
            | {"replicas": "[1, 2, 3]", "zxid": last["zxid"] + number, "at_ns": HEALED_NS - S}
        )  # fmt: skip
    targets = {"fault": "recreate_topic", "targets": '["anew", "b1"]'}
    tables["faults"][0].update(targets)
    result = alone("slow_recovery", tmp_path, tables)
    sentences = [finding.sentence for finding in result.findings]
    expected = "was not healthy again, the last of it anew-0."
    assert [sentence.endswith(expected) for sentence in sentences] == [True] * (members == "[1, 2]")


ZK, CLIENT = ["b1->zk1", "zk1->b1"], ["client->b1"]
BROKERS = ["b1->b2", "b2->b1", "b1->b3", "b3->b1"]
SILENT_FROM = CRASH_NS + 4 * S


def _silence(**fault: Any) -> dict[str, list[dict[str, Any]]]:
    """No acknowledgement from four seconds into the fault to its end."""
    tables = healthy()
    for row in tables["sends"]:
        if SILENT_FROM <= row["invoke_ns"] < HEALED_NS:
            row |= {"complete_ns": HEALED_NS + S}
    tables["faults"][0].update(fault)
    return tables


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ({}, Status.VIOLATED),
        ({"fault": "partition", "targets": '["b2->b1"]'}, Status.VIOLATED),
        ({"fault": "partition", "targets": '["b2->b1", "b3->b1"]'}, Status.HOLDS),
        ({"fault": "partition", "targets": '["client->b1"]'}, Status.HOLDS),
        ({"fault": "shutdown"}, Status.VIOLATED),
        ({"fault": "disk_gone"}, Status.VIOLATED),
        ({"fault": "isolate", "targets": json.dumps(BROKERS + ZK)}, Status.VIOLATED),
        ({"fault": "isolate", "targets": json.dumps(BROKERS + ZK + CLIENT)}, Status.VIOLATED),
        ({"fault": "isolate", "targets": json.dumps(BROKERS)}, Status.HOLDS),
        ({"fault": "isolate", "targets": json.dumps(ZK)}, Status.HOLDS),
        ({"targets": '["b1", "b2"]'}, Status.HOLDS),
        ({"targets": '["zk1"]'}, Status.HOLDS),
        ({"fault": "pause"}, Status.HOLDS),
        ({"acted": False}, Status.HOLDS),
    ],
)
def test_progress_is_required_of_a_majority_alone(
    fault: dict[str, Any], status: Status, tmp_path: Path
) -> None:
    assert alone("no_progress", tmp_path, _silence(**fault)).status is status


@pytest.mark.usefixtures("few")
def test_progress_is_not_demanded_while_leadership_may_move(tmp_path: Path) -> None:
    slow = ClusterSpec(config={"zookeeper.session.timeout.ms": "18000"})
    result = judged(tmp_path, _silence(), scenario=synthetic.scenario(ONE, cluster=slow))
    assert named(result, "no_progress").status is Status.NOT_JUDGED


@pytest.mark.usefixtures("few")
def test_progress_is_not_demanded_where_the_scenario_promises_none(tmp_path: Path) -> None:
    result = judged(tmp_path, _silence(), scenario=synthetic.scenario(ONE, survives=False))
    assert named(result, "no_progress").status is Status.HOLDS


def _stuck(**client: Any) -> dict[str, list[dict[str, Any]]]:
    """From the crash on nothing is acknowledged, and two producers wait for it long after."""
    tables = healthy()
    for row in tables["sends"]:
        if row["invoke_ns"] >= CRASH_NS:
            row |= {"outcome": "info", "complete_ns": None, "offset": None, "partition": None}
    for row in tables["clients"]:
        row |= {"begin_ns": BEGIN_NS, "end_ns": HEALED_NS + 30 * S}
    next(row for row in tables["clients"] if row["client"] == "p1").update(client)
    return tables


def test_pending_sends_are_acknowledged_after_healing(tmp_path: Path) -> None:
    during, finding = alone("no_progress", tmp_path, _stuck()).findings
    assert (during.sub_kind, finding.sub_kind) == ("stalled", "not resumed")
    assert finding.sentence.endswith("although 2 producers waited for it.")
    assert "nothing in the 29.0 s after crash on b1 was healed" in finding.sentence


@pytest.mark.parametrize(
    "client",
    [
        {"client": "p0", "session": 9},  # one alone may hang by itself
        {"end_ns": HEALED_NS + 6 * S},  # too short to judge
        {"transactional_id": "t"},  # its open transaction is aborted
        {"end_ns": CRASH_NS},  # it waits for nothing any more
        {"kind": "verifiable"},
    ],
    ids=str,
)
def test_two_waiting_plain_producers_are_required(client: dict[str, Any], tmp_path: Path) -> None:
    result = alone("no_progress", tmp_path, _stuck(**client))
    assert "not resumed" not in {finding.sub_kind for finding in result.findings}


def _silent_without_faults(since_ns: int = BEGIN_NS + 10 * S, **client: Any) -> Tables:
    """Nothing is acknowledged from then on, in a run without faults."""
    tables = healthy()
    tables["faults"] = []
    tables["states"] = tables["states"][:1]
    for row in tables["sends"]:
        if row["complete_ns"] >= since_ns:
            row |= {"outcome": "info", "complete_ns": None, "offset": None, "partition": None}
    for row in tables["clients"]:
        row |= {"begin_ns": BEGIN_NS, "end_ns": END_NS}
    next(row for row in tables["clients"] if row["client"] == "p1").update(client)
    return tables


def test_undisturbed_partition_makes_progress(tmp_path: Path) -> None:
    (finding,) = alone("no_progress", tmp_path, _silent_without_faults()).findings
    assert finding.sub_kind == "stopped"
    assert "acknowledged nothing for 20.0 s, in which no fault acted" in finding.sentence
    assert finding.sentence.endswith("although 2 producers waited for it.")


@pytest.mark.parametrize(
    "changes",
    [{"since_ns": END_NS - 8 * S}, {"session": 9}, {"end_ns": None}, {"transactional_id": "t"}],
    ids=["not for long", "one alone", "it may have died", "in transactions"],
)
def test_partition_may_be_idle_for_a_while(changes: dict[str, Any], tmp_path: Path) -> None:
    assert not alone("no_progress", tmp_path, _silent_without_faults(**changes)).violations


def _transactions(*outcomes: str, clients: int = 2, first: str = "t") -> Tables:
    """A run without faults, in whose last seconds transactions had these outcomes; `refused` is
    the outcome of an aborted transaction with a failed send."""
    tables = _silent_without_faults(END_NS)
    tables["txns"] = []
    for n, outcome in enumerate(outcomes):
        ends_ns = END_NS - (n + 1) * S
        error = "NOT_COORDINATOR" if outcome == "refused" else None
        name = f"{first}{n % clients}"
        tables["txns"].append(
            {"run": RUN, "client": name, "session": 0, "txn": n, "transactional_id": name}
            | {"begin_ns": ends_ns - S, "end_ns": ends_ns, "error": error}
            | {"outcome": "aborted" if error else outcome}
        )
    return tables


def test_undisturbed_transactions_end_as_requested(tmp_path: Path) -> None:
    (finding,) = alone("no_progress", tmp_path, _transactions(*["unknown"] * 3)).findings
    assert finding.sub_kind == "transactions stopped"
    assert finding.sentence.startswith("No transaction ended as its client requested in ")
    assert finding.sentence.endswith("although 3 were tried.")


def test_transactions_aborted_after_rejections_are_no_progress(tmp_path: Path) -> None:
    (finding,) = alone("no_progress", tmp_path, _transactions(*["refused"] * 3)).findings
    assert finding.sub_kind == "transactions stopped"


def test_other_transactions_do_not_affect_those_that_move_positions(
    tmp_path: Path,
) -> None:
    """One copier that fails often is enough."""
    tables = _transactions(*["committed"] * 4)
    tables["txns"] += _transactions(*["refused"] * 6, clients=1, first="x")["txns"]
    tables["clients"].append({"run": RUN, "client": "x0", "session": 0, "group": "movers"})
    (finding,) = alone("no_progress", tmp_path, tables).findings
    assert finding.sentence.startswith(
        "No transaction of group movers ended as its client requested"
    )


@pytest.mark.parametrize(
    ("outcomes", "clients"),
    [
        (("fenced", "fenced", "fenced"), 2),
        (("refused", "refused", "aborted", "refused"), 2),
        (("unknown", "unknown", "committed", "unknown"), 2),
        (("unknown", "unknown", "aborted", "unknown"), 2),
        (("unknown", "unknown"), 2),
        (("unknown",) * 5, 1),
    ],
    ids=[
        "shut out",
        "an abort was wanted",
        "one commits",
        "one aborts",
        "too few to judge",
        "one alone",
    ],
)
def test_some_transactions_may_fail(
    outcomes: tuple[str, ...], clients: int, tmp_path: Path
) -> None:
    tables = _transactions(*outcomes, clients=clients)
    assert not alone("no_progress", tmp_path, tables).violations


def test_acknowledgement_after_healing_shows_that_the_partition_serves(
    tmp_path: Path,
) -> None:
    tables = _stuck()
    last = max(tables["sends"], key=lambda row: row["invoke_ns"])
    last |= {"outcome": "ok", "complete_ns": HEALED_NS + 20 * S, "partition": 0}
    last["offset"] = ONE.records - 1
    result = alone("no_progress", tmp_path, tables)
    assert "not resumed" not in {finding.sub_kind for finding in result.findings}


@pytest.mark.parametrize(("deadline_s", "status"), [(0.5, Status.VIOLATED), (2.0, Status.HOLDS)])
def test_recovery_has_a_deadline(deadline_s: float, status: Status, tmp_path: Path) -> None:
    scenario = synthetic.scenario(ONE, recovery_deadline_s=deadline_s)
    result = judged(tmp_path, healthy(), scenario=scenario)
    assert named(result, "slow_recovery").status is status


def test_missing_recovery_is_late_though_the_fault_is_unproven(
    tmp_path: Path,
) -> None:
    tables = healthy()
    tables["faults"][0] |= {"acted": False}
    scenario = synthetic.scenario(ONE, recovery_deadline_s=0.5)
    assert named(judged(tmp_path, tables, scenario=scenario), "slow_recovery").violations == 1


def test_lost_evidence_part_yields_no_lateness(tmp_path: Path) -> None:
    facts = msgspec.structs.replace(synthetic.facts(ONE), healed=False)
    stalled = judged(tmp_path / "stalled", _silence(), facts=facts)
    assert named(stalled, "no_progress").status is Status.UNKNOWN
    scenario = synthetic.scenario(ONE, recovery_deadline_s=0.5)
    late = judged(tmp_path / "late", healthy(), scenario=scenario, facts=facts)
    assert named(late, "slow_recovery").status is Status.UNKNOWN
    assert {stalled.verdict, late.verdict} == {Verdict.UNKNOWN}


@pytest.mark.parametrize(
    ("tasks", "lasts_s", "status"),
    [(25.0, 11, Status.UNKNOWN), (25.0, 1, Status.VIOLATED), (3.0, 60, Status.VIOLATED)],
)
def test_host_load_yields_no_lateness(
    tasks: float, lasts_s: int, status: Status, tmp_path: Path
) -> None:
    tables = healthy()
    tables["samples"] += [
        {
            "at_ns": BEGIN_NS + n * S,
            "source": host_load.SOURCE,
            "metric": host_load.METRIC,
            "labels": "{}",
        }
        | {"value": tasks if n <= lasts_s else 2.0}
        for n in range(60)
    ]
    scenario = synthetic.scenario(ONE, recovery_deadline_s=0.5)
    result = judged(tmp_path, tables, scenario=scenario)
    late = named(result, "slow_recovery")
    assert late.status is status
    assert late.reason.startswith("25 tasks a processor") is (status is Status.UNKNOWN)
    assert result.verdict is (Verdict.UNKNOWN if status is Status.UNKNOWN else Verdict.FAIL)


def test_loads_of_two_hosts_are_not_averaged(tmp_path: Path) -> None:
    tables = healthy()
    tables["samples"] += [
        {"at_ns": BEGIN_NS + n * S, "metric": host_load.METRIC, "labels": "{}"}
        | {"source": source, "value": tasks}
        for n in range(20)
        for source, tasks in (("alpha", 2.0), ("beta", 14.0))
    ]
    result = judged(tmp_path, tables, scenario=synthetic.scenario(ONE, recovery_deadline_s=0.5))
    late = named(result, "slow_recovery")
    assert late.status is Status.UNKNOWN
    assert late.reason.startswith("14 tasks a processor of the host beta wanted to run")


def test_host_load_excuses_nothing_due_before_an_answer(tmp_path: Path) -> None:
    copy = copy_of(healthy())
    next(damage for damage in DAMAGES if damage.name == "serve deleted records")(copy)
    copy.tables["samples"] += [
        {
            "at_ns": BEGIN_NS + n * S,
            "source": host_load.SOURCE,
            "metric": host_load.METRIC,
            "labels": "{}",
        }
        | {"value": 25.0}
        for n in range(60)
    ]
    facts = synthetic.facts(ONE)
    facts.phases[2] = type(facts.phases[2])(name="after", begin_ns=1, end_ns=END_NS + 600 * S)
    result = alone("undeleted_records", tmp_path, copy.tables, facts=facts)
    assert (result.status, result.reason) == (Status.VIOLATED, "")


def test_a_recovery_that_the_next_fault_disturbed_is_not_judged(tmp_path: Path) -> None:
    tables = healthy()
    again = {"begin_ns": HEALED_NS + S // 2, "end_ns": HEALED_NS + S, "healed_ns": HEALED_NS + S}
    tables["faults"].append(tables["faults"][0] | again)
    scenario = synthetic.scenario(ONE, recovery_deadline_s=0.5)
    result = judged(tmp_path, tables, scenario=scenario)
    assert named(result, "slow_recovery").opportunities == 1
    assert named(result, "slow_recovery").status is Status.HOLDS


@pytest.mark.parametrize(
    ("targets", "status"),
    [('["b1->b2"]', Status.NOT_JUDGED), ('["b2"]', Status.VIOLATED), ('["b1"]', Status.NOT_JUDGED)],
)
def test_leader_that_could_not_know_its_isr_is_excused(
    targets: str, status: Status, tmp_path: Path
) -> None:
    """Broker 1 leads in epoch 0. While its links are cut, or it is paused, it uses the last ISR
    that it read."""
    tables = healthy()
    first = min(tables["states"], key=lambda row: row["zxid"])
    first["isr"] = "[1]"
    tables["faults"][0] |= {
        "begin_ns": first["at_ns"] + S,
        "targets": targets,
        "fault": "pause",
    }
    result = alone("ack_below_min_isr", tmp_path, tables)
    assert result.status is status


def test_leader_is_judged_by_acknowledgements_before_the_fault(tmp_path: Path) -> None:
    """The leader's later death does not excuse acknowledgements from before it."""
    tables = healthy()
    first, second = sorted(tables["states"], key=lambda row: row["zxid"])[:2]
    first["isr"] = "[1]"
    died = {"begin_ns": second["at_ns"] - S // 10, "targets": '["b1"]', "fault": "crash"}
    tables["faults"][0] |= died
    result = alone("ack_below_min_isr", tmp_path, tables)
    assert result.status is Status.VIOLATED
    assert result.violations > 0
