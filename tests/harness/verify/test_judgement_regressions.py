"""Regressions of judging: violations that once passed, healthy histories with findings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy, judged, named
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.host_clocks import BOUND, WALL_OFFSET
from urteil.harness.scenario import Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import Result, Status, Verdict
from urteil.harness.verify.synthetic import CRASH_NS, HEALED_NS, S, Shape

LOGGED = ("sends", "reads", "replicas")


def _violated(result: Result) -> set[str]:
    return {
        guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
    }


def _lose(tables: Tables, offset: int) -> None:
    for name in ("reads", "replicas"):
        tables[name] = [row for row in tables[name] if row["offset"] != offset]


def _then(tables: Tables, **changes: Any) -> None:
    """One more version of the partition's state."""
    last = max(tables["states"], key=lambda row: int(row["zxid"]))
    after = {"zxid": last["zxid"] + 1, "version": last["version"] + 1, "at_ns": last["at_ns"] + S}
    tables["states"].append(last | after | changes)


def test_leader_needs_its_own_epoch_and_isr_membership(tmp_path: Path) -> None:
    tables = healthy()
    _then(tables, leader=2)
    _then(tables, leader=-1, leader_epoch=4, isr="[1]")
    _then(tables, leader=-1, leader_epoch=5, isr="[]")
    _then(tables, leader=2, leader_epoch=6, isr="[2]")
    result = judged(tmp_path, tables)
    assert _violated(result) == {"two_leaders", "unclean_leader"}
    (finding,) = named(result, "two_leaders").findings
    assert finding.sentence == "Brokers 1 and 2 both led urteil-0 in epoch 3."
    assert "the ISR before was [1]" in named(result, "unclean_leader").findings[0].sentence


def test_leader_from_the_eligible_replicas_is_no_finding(tmp_path: Path) -> None:
    tables = healthy()
    _then(tables, leader=-1, leader_epoch=4, isr="[1]", elr="[2]")
    _then(tables, leader=-1, leader_epoch=5, isr="[]", elr="[1, 2]")
    _then(tables, leader=2, leader_epoch=6, isr="[2]", elr="[1]")
    assert alone("unclean_leader", tmp_path / "eligible", tables).findings == []
    _then(tables, leader=3, leader_epoch=7, isr="[3]", elr="[]")
    (finding,) = alone("unclean_leader", tmp_path / "outside", tables).findings
    assert "the ISR before was [2], the eligible leader replicas were [1]," in finding.sentence


def test_log_without_records_in_its_range_is_a_hole(tmp_path: Path) -> None:
    tables = healthy()
    tables["replicas"] = [row for row in tables["replicas"] if row["broker"] != 3]
    (finding,) = alone("hole", tmp_path, tables).findings
    assert (finding.sub_kind, finding.offset, finding.records[0]["next_off"]) == ("gap", 0, 400)


def test_another_replicas_log_start_excuses_no_loss(tmp_path: Path) -> None:
    tables = healthy()
    tables["logs"][2]["log_start"] = 100
    tables["replicas"] = [
        row for row in tables["replicas"] if row["broker"] != 3 or row["offset"] >= 100
    ]
    result = judged(tmp_path / "healthy", tables)
    assert (_violated(result), result.verdict) == (set(), Verdict.UNKNOWN)
    expected = "evidence/logs: the logs of urteil-0 begin at 0, 100, and nothing was deleted"
    assert result.reasons == [expected]
    _lose(tables, 50)
    (finding,) = alone("lost_write", tmp_path / "lost", tables).findings
    assert (finding.sub_kind, finding.offset) == ("middle", 50)


def test_log_of_another_replica_yields_no_finding_without_the_leaders(tmp_path: Path) -> None:
    """Broker 1 led last and its log is not there; broker 3's ends where it fell out of the ISR."""
    tables = healthy()
    tables["logs"] = [row | {"log_end": 300} for row in tables["logs"] if row["broker"] == 3]
    tables["replicas"] = [
        row for row in tables["replicas"] if row["broker"] == 3 and row["offset"] < 300
    ]
    result = judged(tmp_path, tables)
    assert (_violated(result), result.verdict) == (set(), Verdict.UNKNOWN)
    assert "no log of the final leader of urteil-0" in result.reasons


def test_acks_one_permits_misplaced_acks_only_where_an_election_truncated(tmp_path: Path) -> None:
    shape = Shape(records=400, partitions=1, acks=1, idempotent=False)
    tables = healthy(shape)
    tables["sends"][50]["offset"], tables["sends"][54]["offset"] = 54, 50
    before = [row for row in tables["sends"] if CRASH_NS - S < row["invoke_ns"] < CRASH_NS]
    for row in before[-2:]:
        row["offset"] += 300
    misplaced = alone("misplaced_ack", tmp_path, tables, shape=shape)
    assert (misplaced.violations, misplaced.permitted) == (2, 2)


def test_read_without_key_and_absurd_offset_are_found(tmp_path: Path) -> None:
    tables = healthy()
    final = next(row for row in tables["reads"] if row["client"] == "final" and row["offset"] == 9)
    final |= {"key": None, "intact": False}
    tables["sends"][60]["offset"] = 1 << 62
    result = judged(tmp_path, tables)
    assert {"phantom", "misplaced_ack"} <= _violated(result)
    assert named(result, "phantom").findings[0].sub_kind == "another key"


@pytest.mark.parametrize(("sent", "shown"), [(None, ""), ("", None)])
def test_null_key_differs_from_an_empty_key(
    sent: str | None, shown: str | None, tmp_path: Path
) -> None:
    """In the batch itself, on every disk and for all readers."""
    tables = healthy()
    for row in tables["sends"]:
        row["key"] = sent if row["offset"] in (50, 51) else row["key"]
    for row in (*tables["reads"], *tables["replicas"]):
        row["key"] = {50: shown, 51: sent}.get(row["offset"], row["key"])
    (finding,) = alone("phantom", tmp_path, tables).findings
    assert (finding.sub_kind, finding.offset) == ("another key", 50)
    fields = {None: "no key", "": "the key ''"}
    assert f"under {fields[shown]}; it was sent under {fields[sent]}" in finding.sentence


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_record_without_key_on_one_replica_is_found(broker: int, tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["replicas"]:
        row["key"] = None if (row["broker"], row["offset"]) == (broker, 50) else row["key"]
    (finding,) = alone("phantom", tmp_path, tables).findings
    assert (finding.sub_kind, finding.offset) == ("another key", 50)


def test_log_ending_below_a_reported_end_is_a_reason(tmp_path: Path) -> None:
    tables = healthy()
    final = [row for row in tables["passes"] if row["final"]]
    final[0]["to_offset"] += 7
    result = judged(tmp_path, tables)
    assert (_violated(result), result.verdict) == (set(), Verdict.UNKNOWN)
    assert "received the end 407, the final leader's log ends at 400" in result.reasons[0]


def _from(base: int) -> Tables:
    tables = healthy()
    moved = {"offset", "batch_base", "log_start", "log_end", "high_watermark", "from_offset"}
    moved |= {"to_offset", "position_before", "position_after"}
    for row in (row for rows in tables.values() for row in rows):
        row |= {name: row[name] + base for name in moved & row.keys() if row[name] is not None}
    for row in tables["logs"]:
        row["epochs"] = json.dumps({e: base + at for e, at in json.loads(row["epochs"]).items()})
    return tables


def test_offsets_above_the_bound_yield_no_finding(tmp_path: Path) -> None:
    assert judged(tmp_path / "large", _from(10**14)).verdict is Verdict.PASS
    result = judged(tmp_path / "beyond", _from(10**15))
    assert (_violated(result), result.verdict) == (set(), Verdict.UNKNOWN)
    assert "urteil has offsets up to 1000000000000400" in result.reasons[0]


def test_unplaceable_row_is_a_reason(tmp_path: Path) -> None:
    tables = healthy()
    tables["sends"][50]["topic_id"] = None
    tables["sends"][60]["value_id"] = None
    tables["reads"][70]["topic_id"] = "of another topic"
    result = judged(tmp_path, tables)
    assert (_violated(result), result.verdict) == (set(), Verdict.UNKNOWN)
    assert result.reasons[:3] == [
        "evidence/sends/part-0.parquet: it has rows without value_id: collect the evidence again",
        "1 send without a partition of a topic in run.json",
        "1 read without a partition of a topic in run.json",
    ]


def test_a_run_that_names_no_topic_promised_nothing(tmp_path: Path) -> None:
    facts = synthetic.facts(ONE, topics=[])
    result = judged(
        tmp_path, healthy(), facts=facts, scenario=synthetic.scenario(ONE, guarantees=())
    )
    assert result.verdict is Verdict.UNKNOWN
    assert "run.json names no topic: nothing was promised" in result.reasons


def test_times_of_two_boots_yield_no_finding(tmp_path: Path) -> None:
    tables = healthy()
    tables["clients"][2]["boot_id"] = "another"
    tables["reads"][0]["read_ns"] = 1
    result = judged(tmp_path, tables)
    assert (_violated(result), result.verdict) == (set(), Verdict.UNKNOWN)
    assert "times of 2 boots cannot be compared" in result.reasons


@pytest.mark.parametrize(
    ("offset_s", "bound_s", "is_too_far"),
    [(0.09, 0.005, False), (0.09, 0.02, True), (-0.3, 0.001, True)],
)
def test_times_of_a_host_with_distant_clock_yield_no_finding(
    offset_s: float, bound_s: float, is_too_far: bool, tmp_path: Path
) -> None:
    """An offset that the limit and the bound leave open counts as too far."""
    tables = healthy()
    for metric, value in ((WALL_OFFSET, offset_s), (BOUND, bound_s)):
        common = {"at_ns": CRASH_NS, "source": "alpha", "labels": "{}"}
        tables["samples"].append(common | {"metric": metric, "value": value})
    early = next(row for row in tables["reads"] if row["offset"] == 50)
    early["read_ns"] = tables["sends"][0]["invoke_ns"]
    result = judged(tmp_path, tables)
    reason = f"the clock of the host alpha differed from the lab's by {1000 * offset_s:+.1f} ms"
    assert any(reason in one for one in result.reasons) == is_too_far
    assert bool(_violated(result)) != is_too_far


def test_unwatched_deadline_yields_no_late_recovery(tmp_path: Path) -> None:
    tables = healthy()
    tables["states"] = tables["states"][:2]
    facts = synthetic.facts(ONE)
    for watched_s, status in ((2, Status.NOT_JUDGED), (31, Status.VIOLATED)):
        facts.phases = [Phase(name="after", begin_ns=HEALED_NS, end_ns=HEALED_NS + watched_s * S)]
        result = judged(tmp_path / f"{watched_s}", tables, facts=facts)
        assert named(result, "slow_recovery").status is status


def test_election_after_an_interrupted_load_is_evidence(tmp_path: Path) -> None:
    """An interrupted lab records the end of the load, and its cluster elects until it is killed."""
    facts = synthetic.facts(ONE)
    facts.phases = [Phase(name="before", begin_ns=0, end_ns=CRASH_NS)]
    assert _violated(judged(tmp_path, healthy(), facts=facts)) == set()


def test_partition_without_sends_has_not_stalled(tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["sends"]:
        if CRASH_NS < row["invoke_ns"] < HEALED_NS:
            row |= {"invoke_ns": HEALED_NS + S, "complete_ns": HEALED_NS + S + 1}
    assert alone("no_progress", tmp_path, tables).status is Status.HOLDS


def test_recreated_topic_has_its_own_offsets(
    tmp_path: Path,
) -> None:
    """The same name and offsets under another id, deleted before the crash."""
    tables, old = healthy(), {"topic_id": "AAAAAAAAAAAAAAAAAAAAAA"}
    for row in [row for row in tables["sends"] if row["offset"] < 50]:
        value = {"value_id": f"r/p0/{7000 + row['offset']}", "client": "p0"}
        tables["sends"].append(row | old | value | {"op": 7000 + row["offset"]})
    born = tables["states"][0] | old
    nobody = {"leader": None, "leader_epoch": None, "controller_epoch": None, "isr": None}
    tables["states"] += [
        born | {"zxid": 1, "at_ns": born["at_ns"] - S},
        born | nobody | {"zxid": 2, "version": -1, "at_ns": CRASH_NS - S},
    ]
    assert judged(tmp_path / "new", tables).verdict is Verdict.PASS
    (topic,) = synthetic.facts(ONE).topics
    both = [topic, msgspec.structs.replace(topic, topic_id=old["topic_id"])]
    facts = synthetic.facts(ONE, topics=both)
    result = judged(tmp_path / "both", tables, facts=facts)
    assert (_violated(result), result.verdict) == (set(), Verdict.UNKNOWN)
    asked = {"act": "delete", "subject": topic.name, "outcome": "ok", "invoke_ns": CRASH_NS - S}
    tables["admin_ops"] = [dict.fromkeys(SCHEMAS["admin_ops"].names) | asked]
    assert judged(tmp_path / "asked", tables, facts=facts).verdict is Verdict.PASS


@pytest.mark.parametrize("acks", [0, 1])
def test_acks_zero_excuses_reordering_and_one_in_flight_does_not(acks: int, tmp_path: Path) -> None:
    shape = Shape(records=400, partitions=1, acks=acks, idempotent=False)
    tables = healthy(shape)
    for name in LOGGED:
        for row in tables[name]:
            row["offset"] = {40: 41, 41: 40}.get(row["offset"], row["offset"])
    scenario = synthetic.scenario(shape)
    load = msgspec.structs.replace(scenario.workload, in_flight=1)
    scenario = msgspec.structs.replace(scenario, workload=load)
    result = alone("reordered_send", tmp_path, tables, shape=shape, scenario=scenario)
    assert result.status is (Status.VIOLATED if acks else Status.PERMITTED)


def test_an_unclean_election_that_was_asked_for_permits_its_loss(tmp_path: Path) -> None:
    tables = healthy()
    states = sorted(tables["states"], key=lambda row: int(row["zxid"]))
    states[0]["isr"] = json.dumps([states[0]["leader"]])
    lost = {"value_id": "r/p0/9000", "op": 9000, "invoke_ns": CRASH_NS, "complete_ns": CRASH_NS + 1}
    tables["sends"].append(tables["sends"][203] | lost)
    tables["admin_ops"] = [{"act": "elect unclean", "subject": "urteil-0", "outcome": "ok"}]
    result = judged(tmp_path, tables)
    assert named(result, "lost_write").status is Status.PERMITTED
    assert named(result, "unclean_leader").status is Status.PERMITTED
