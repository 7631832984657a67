"""Healthy evidence holds, every damage is found by its guarantee, and excuses excuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import ONE, alone, copy_of, healthy, judged, named, topic
from urteil.harness.verify import synthetic
from urteil.harness.verify.damage import DAMAGES, Damage
from urteil.harness.verify.guarantees import GUARANTEES
from urteil.harness.verify.guarantees.base import Occasion
from urteil.harness.verify.result import Status, Verdict
from urteil.harness.verify.self_test import is_found, judge_copy
from urteil.harness.verify.synthetic import END_NS, S, Shape

OCCASIONS = {None, Occasion.LIVE_READERS, Occasion.LOGS}
"""The occasions in the healthy evidence."""


def test_healthy_evidence_holds_every_guarantee(tmp_path: Path) -> None:
    result = judged(tmp_path, healthy(), canary=True)
    assert result.verdict is Verdict.PASS, result.reasons
    for guarantee in result.guarantees:
        if GUARANTEES[guarantee.name].occasion not in OCCASIONS:
            assert guarantee.status is Status.NOT_JUDGED, guarantee
        else:
            assert guarantee.status is Status.HOLDS, guarantee
            assert guarantee.opportunities > 0, guarantee
    assert set(result.canary.values()) == {"found", "not tried: the topic has one partition"}


def test_split_guarantee_serves_earlier_scenarios(tmp_path: Path) -> None:
    """`kept_too_long` is not judged here; `leftover_log`, which was a part of it, holds."""
    scenario = synthetic.scenario(ONE, guarantees=("kept_too_long",))
    result = judged(tmp_path / "split", healthy(), scenario=scenario)
    assert named(result, "kept_too_long").status is Status.NOT_JUDGED
    assert named(result, "leftover_log").status is Status.HOLDS
    assert result.verdict is Verdict.PASS, result.reasons
    scenario = synthetic.scenario(ONE, guarantees=("quota_exceeded",))
    result = judged(tmp_path / "whole", healthy(), scenario=scenario)
    assert result.verdict is Verdict.UNKNOWN


@pytest.mark.thorough  # the canary of several partitions finds them all at once
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name.replace(" ", "-"))
def test_every_damage_is_a_violation_of_its_guarantee(damage: Damage, tmp_path: Path) -> None:
    copy = copy_of(healthy())
    trace = damage(copy)
    facts = example_runs.two_partitions(synthetic.facts(ONE))
    facts.phases[2] = type(facts.phases[2])(name="after", begin_ns=1, end_ns=END_NS + 600 * S)
    only = {trace.guarantee}
    results = judge_copy(tmp_path, copy, example_runs.damaged_scenario(), facts, only=only)
    assert is_found(results, trace), (trace, results[trace.guarantee])
    counted = GUARANTEES[trace.guarantee].never_fails
    assert (results[trace.guarantee].violations > 0) is not counted
    first = results[trace.guarantee].findings[0]
    assert (first.permitted is None) is not counted
    assert first.sentence.endswith(".")


def test_every_guarantee_has_a_damage_that_it_finds() -> None:
    assert {damage.guarantee for damage in DAMAGES} == set(GUARANTEES)


def test_a_position_that_goes_back_is_found_in_polls_alone(tmp_path: Path) -> None:
    tables = healthy()
    poll = next(row for row in tables["polls"] if row["poll"] == 3)
    poll["position_before"] -= 10
    (finding,) = alone("nonmonotonic_poll", tmp_path, tables).findings
    assert (finding.sub_kind, finding.offset) == ("position", 140)


def test_poll_recorded_twice_has_one_position(tmp_path: Path) -> None:
    tables = healthy()
    tables["polls"] += [dict(row) for row in tables["polls"] if row["poll"] == 3]
    assert alone("nonmonotonic_poll", tmp_path, tables).violations == 0


def test_absent_producer_is_null_or_minus_one(tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["replicas"]:
        none = None if row["broker"] == 2 else -1
        row |= dict.fromkeys(("producer_id", "producer_epoch", "sequence"), none)
    assert alone("replica_divergence", tmp_path, tables).violations == 0


def test_new_pass_may_begin_anywhere(tmp_path: Path) -> None:
    """A reader that sweeps twice and records its polls has sought in between."""
    tables = healthy()
    last = max((row for row in tables["polls"] if row["client"] == "c0"), key=lambda e: e["poll"])
    reads = [row for row in tables["reads"] if row["client"] == "c0"]
    again_ns = last["complete_ns"] + 1000
    tables["reads"] += [
        row | {"pass": 99, "poll": last["poll"] + 1, "position_in_poll": row["offset"]}
        | {"read_ns": again_ns + 2000} for row in reads if row["offset"] < 10
    ]  # fmt: skip
    here = {"poll": last["poll"] + 1, "invoke_ns": again_ns + 1000, "complete_ns": again_ns + 2000}
    tables["polls"].append(last | here | {"position_before": 0, "position_after": 10})
    assert alone("nonmonotonic_poll", tmp_path / "untold", tables).violations == 1
    begun = next(row for row in tables["passes"] if row["client"] == "c0")
    more = {"pass": 99, "from_offset": 0, "to_offset": 10, "begin_ns": again_ns}
    tables["passes"].append(begun | more | {"end_ns": again_ns + 3000})
    assert alone("nonmonotonic_poll", tmp_path / "recorded", tables).violations == 0


def test_position_may_go_back_with_an_unrecorded_assignment(tmp_path: Path) -> None:
    """A reader without poll events was moved by its recorded assignment."""
    tables = healthy()
    poll = next(row for row in tables["polls"] if row["poll"] == 3 and row["client"] == "c0")
    poll["position_before"] -= 10
    own = {name: poll[name] for name in ("run", "client", "session", "topic_id", "partition")}
    given = own | {"group": "g", "member_id": "c0", "event": "assigned"}
    early = given | {"generation": 1, "at_ns": 1}
    tables["assignments"].append(early)
    assert alone("nonmonotonic_poll", tmp_path / "early", tables).violations == 1
    tables["assignments"].append(early | {"generation": 2, "at_ns": poll["complete_ns"] - 1})
    assert alone("nonmonotonic_poll", tmp_path / "recorded", tables).violations == 0


@pytest.mark.parametrize("event", ["seek", "reset", "rebalance"])
def test_events_excuse_skips_and_steps_back(event: str, tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["polls"]:
        if row["poll"] == 4:
            row |= {"event": event, "position_before": 150}
    tables["reads"] = [
        row for row in tables["reads"] if not (row["client"] == "c0" and row["poll"] == 3)
    ]
    result = judged(tmp_path, tables)
    assert named(result, "poll_skip").status is Status.HOLDS
    assert named(result, "nonmonotonic_poll").status is Status.HOLDS


def test_a_skip_across_buckets_is_found(tmp_path: Path) -> None:
    """The last visible slot before a bucket's first one is in another bucket."""
    tables = healthy()
    for name in ("sends", "reads", "replicas"):
        for row in tables[name]:
            row["offset"] += 262_144 - 200
    tables["commit_reads"] = []
    for row in tables["logs"]:
        row |= {"log_start": 262_144 - 200, "log_end": 262_144 + 200, "high_watermark": 262_344}
    for row in tables["passes"]:
        row |= {"from_offset": 262_144 - 200, "to_offset": 262_144 + 200}
    gone = 262_143
    tables["reads"] = [
        row for row in tables["reads"] if not (row["client"] == "c0" and row["offset"] == gone)
    ]
    (finding,) = alone("poll_skip", tmp_path, tables).findings
    assert finding.offset == gone


def test_unread_send_with_unknown_outcome_may_be_missing(tmp_path: Path) -> None:
    tables = healthy()
    victim = tables["sends"][50]
    victim |= {"outcome": "info", "offset": None, "complete_ns": None}
    for name in ("reads", "replicas"):
        tables[name] = [row for row in tables[name] if row["value_id"] != victim["value_id"]]
    result = judged(tmp_path, tables)
    assert named(result, "lost_write").status is Status.HOLDS


def test_read_send_with_unknown_outcome_may_not_be_missing(tmp_path: Path) -> None:
    tables = healthy()
    victim = tables["sends"][50]
    victim |= {"outcome": "info", "offset": None, "complete_ns": None}
    for name in ("reads", "replicas"):
        tables[name] = [
            row
            for row in tables[name]
            if row["value_id"] != victim["value_id"] or row.get("client") == "c0"
        ]
    result = judged(tmp_path, tables)
    (finding,) = named(result, "lost_write").findings
    assert (finding.offset, finding.sub_kind) == (50, "middle")
    assert "was read" in finding.sentence
    assert named(result, "vanished_read").findings[0].sub_kind == "gone"


def test_offsets_below_the_log_start_may_be_deleted(tmp_path: Path) -> None:
    tables = healthy()
    for name in ("reads", "replicas"):
        tables[name] = [
            row for row in tables[name] if row["offset"] >= 40 or row.get("client") == "c0"
        ]
    for row in tables["logs"]:
        row["log_start"] = 40
    for row in tables["passes"]:
        row["from_offset"] = 40 if row["final"] else 0
    facts = synthetic.facts(ONE)
    facts.topics[:] = example_runs.topic(retention_ms="1000")
    assert judged(tmp_path, tables, facts=facts).verdict is Verdict.PASS


def test_compacted_topics_may_have_holes_and_other_bytes(tmp_path: Path) -> None:
    tables = healthy()
    kept = [offset % 7 > 0 or offset >= 350 for offset in range(ONE.records)]
    tables["replicas"] = [
        row | {"batch_crc": row["broker"]} for row in tables["replicas"] if kept[row["offset"]]
    ]
    tables["reads"] = [row for row in tables["reads"] if kept[row["offset"]]]
    facts = synthetic.facts(ONE, topics=example_runs.topic(cleanup_policy="compact"))
    result = judged(tmp_path, tables, facts=facts)
    assert [
        guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
    ] == []


def test_leader_need_not_find_times_of_cleaned_records(tmp_path: Path) -> None:
    tables = healthy()
    asked = next(row for row in tables["sends"] if row["offset"] == 100)
    (tables["offset_answers"][-1]) |= {"query": "time", "timestamp_ms": asked["timestamp_ms"]}
    tables["offset_answers"][-1] |= {"offset": 101, "error": None, "node": 2}
    cleaned = [r for r in tables["replicas"] if (r["broker"], r["offset"]) != (2, 100)]
    topics = example_runs.topic(cleanup_policy="compact")
    facts = synthetic.facts(ONE, topics=topics)
    (finding,) = alone("time_index_wrong", tmp_path, tables, facts=facts).findings
    assert (finding.sub_kind, finding.offset) == ("too late", 101)
    tables["replicas"] = cleaned
    result = alone("time_index_wrong", tmp_path, tables, facts=synthetic.facts(ONE, topics=topics))
    assert result.status is Status.HOLDS, result.findings


@pytest.mark.parametrize(
    ("broker", "log_start", "version", "expected"),
    [(2, 0, 7, ["none"]), (1, 0, 7, []), (2, 40, 7, []), (2, 0, 4, [])],
)
def test_deposed_truncated_or_early_leader_may_miss_records_by_time(
    broker: int, log_start: int, version: int, expected: list[str], tmp_path: Path
) -> None:
    """A leader may have a segment below its log's start: retention has just moved the start (Apache
    Kafka under `deletion` 71002), or it was a follower that had not removed the segment yet. Before
    KIP-207 a new leader answers by a high watermark that lags (0.11.0.3 under `epoch-truncation`
    1)."""
    tables = healthy()
    for row in tables["logs"]:
        row["log_start"] = log_start
    asked = next(row for row in tables["sends"] if row["offset"] == 250)
    at_ns = asked["complete_ns"] + 1
    fields = {"query": "time", "timestamp_ms": asked["timestamp_ms"], "offset": -1, "error": None}
    fields |= {"node": broker, "invoke_ns": at_ns, "complete_ns": at_ns + 1, "leader_epoch": -1}
    fields |= {"api_version": version}
    tables["offset_answers"].append(tables["offset_answers"][0] | fields)
    result = alone("time_index_wrong", tmp_path, tables)
    assert [finding.sub_kind for finding in result.findings] == expected


@pytest.mark.parametrize(
    ("offset", "reported", "expected"),
    [
        (100, {}, []),
        (100, {"leader_epoch": -1}, []),
        (100, {"leader_epoch": 7}, ["other epoch"]),
        (100, {"timestamp_ms": 1}, ["other time"]),
        (100, {"query": "max"}, ["not the newest"]),
        (ONE.records - 1, {"query": "max"}, []),
        (ONE.records - 1, {"query": "max", "invoke_ns": 1, "leader_epoch": 7}, []),
        (ONE.records - 1, {"query": "max", "invoke_ns": 1, "leader_epoch": 0}, ["other epoch"]),
    ],
)
def test_answer_of_a_lookup_by_time_matches_its_record(
    offset: int, reported: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    tables = healthy()
    row = next(r for r in tables["replicas"] if (r["broker"], r["offset"]) == (2, offset))
    asked_ms = row["timestamp_ms"]
    at_ns = max(table["complete_ns"] for table in tables["sends"]) + 1
    answer = {"query": f"time:{asked_ms}", "timestamp_ms": asked_ms, "offset": offset}
    answer |= {"node": 2, "error": None, "leader_epoch": row["leader_epoch"]}
    answer |= {"invoke_ns": at_ns, "complete_ns": at_ns + 1}
    tables["offset_answers"].append(tables["offset_answers"][0] | answer | reported)
    result = alone("time_index_wrong", tmp_path, tables)
    assert [finding.sub_kind for finding in result.findings] == expected


@pytest.mark.parametrize(("second", "expected"), [(5, []), (4, ["shared id"])])
def test_producer_ids_are_unique(second: int, expected: list[str], tmp_path: Path) -> None:
    tables = healthy()
    asked = tables["offset_answers"][0] | {"query": "producer", "error": None}
    tables["offset_answers"] += [asked | {"offset": 4}, asked | {"offset": second, "node": 1}]
    result = alone("sequence_gap", tmp_path, tables)
    assert [finding.sub_kind for finding in result.findings] == expected


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_records_keep_the_id_of_their_producer(policy: str, tmp_path: Path) -> None:
    """A cleaner that rewrites a batch keeps it, too."""
    tables = healthy()
    (sent,) = (row for row in tables["sends"] if row["offset"] == 200)
    sent["producer_id"] = next(r["producer_id"] for r in tables["replicas"] if r["offset"] == 200)
    facts = synthetic.facts(ONE, topics=topic(**{"cleanup.policy": policy}))
    kept = alone("sequence_gap", tmp_path / "kept", tables, facts=facts)
    assert [finding.sub_kind for finding in kept.findings] == []
    for row in tables["replicas"]:
        if row["offset"] == 200:
            row |= {"producer_id": None, "producer_epoch": None, "sequence": None}
    result = alone("sequence_gap", tmp_path / "lost", tables, facts=facts)
    assert "stripped" in [finding.sub_kind for finding in result.findings]


@pytest.mark.parametrize(("lost", "expected"), [(True, []), (False, ["not the newest"])])
def test_lost_record_is_not_the_newest(lost: bool, expected: list[str], tmp_path: Path) -> None:
    """Right after an unclean election a leader returns its last record; lost_write judges whether
    others may be lost (Apache Kafka under `unclean-on` 73102)."""
    tables = healthy()
    newest = max(tables["sends"], key=lambda row: row["offset"])
    before = next(row for row in tables["sends"] if row["offset"] == newest["offset"] - 1)
    if lost:
        tables["replicas"] = [r for r in tables["replicas"] if r["offset"] != newest["offset"]]
    at_ns = newest["complete_ns"] + 1
    answer = {"query": "max", "timestamp_ms": before["timestamp_ms"], "offset": before["offset"]}
    answer |= {"node": 2, "error": None, "leader_epoch": 1}
    answer |= {"invoke_ns": at_ns, "complete_ns": at_ns + 1}
    tables["offset_answers"].append(tables["offset_answers"][0] | answer)
    result = alone("time_index_wrong", tmp_path, tables)
    assert [finding.sub_kind for finding in result.findings] == expected


def test_a_foreign_record_is_a_phantom_and_no_duplicate(tmp_path: Path) -> None:
    tables = healthy()
    for row in [*tables["reads"], *tables["replicas"]]:
        if row["offset"] in (10, 11):
            row["value_id"] = "foreign"
    result = judged(tmp_path, tables)
    assert named(result, "phantom").findings[0].sub_kind == "no invocation"
    assert named(result, "duplicate").status is Status.HOLDS


def test_truncated_journal_yields_no_phantom(tmp_path: Path) -> None:
    tables = healthy()
    tables["sends"] = [row for row in tables["sends"] if row["client"] != "p1"]
    for row in tables["manifest"]:
        row["ended_properly"] = row["file"] != "journal/p1.jsonl"
    result = judged(tmp_path, tables)
    assert named(result, "phantom").status is Status.HOLDS
    assert result.verdict is Verdict.UNKNOWN
    assert "the journal of p1 did not end properly" in result.reasons


def test_a_record_lost_on_every_replica_names_its_place(tmp_path: Path) -> None:
    for offset, kind in ((0, "prefix"), (100, "middle"), (399, "tail")):
        tables = healthy()
        for name in ("reads", "replicas"):
            tables[name] = [row for row in tables[name] if row["offset"] != offset]
        (finding,) = alone("lost_write", tmp_path / kind, tables).findings
        assert finding.sub_kind == kind
        record = finding.records[0]
        assert record["offset"] == offset
        assert {"value_id", "client", "leader_epoch", "leader", "acks"} <= set(record)


def test_findings_name_the_faults_that_were_active(tmp_path: Path) -> None:
    tables = healthy()
    offset = next(row["offset"] for row in tables["sends"] if row["invoke_ns"] > 1_018 * S)
    tables["replicas"] = [row for row in tables["replicas"] if row["offset"] != offset]
    (finding,) = alone("lost_write", tmp_path, tables).findings
    assert finding.faults == ["crash b1"]


def test_findings_show_each_source_of_the_offset(tmp_path: Path) -> None:
    tables = healthy()
    tables["replicas"] = [
        row for row in tables["replicas"] if row["offset"] != 50 or row["broker"] == 2
    ]
    tables["reads"] = [row for row in tables["reads"] if row["client"] != "g0"]
    (finding,) = alone("lost_write", tmp_path, tables).findings
    said = [
        (record["source"], record.get("broker"), record.get("client"))
        for record in finding.records[1:]
    ]
    assert said == [
        ("acknowledgement", 1, "p0"),
        ("read", None, "c0"),
        *[("read", None, "final")] * 3,
        ("replica", 2, None),
    ]
    assert {record["offset"] for record in finding.records} == {50}


def test_result_keeps_a_hundred_findings_and_counts_all(tmp_path: Path) -> None:
    tables = healthy()
    tables["replicas"] = [row for row in tables["replicas"] if row["offset"] >= 150]
    result = alone("lost_write", tmp_path, tables)
    assert result.violations == 150
    assert [finding.offset for finding in result.findings] == list(range(100))


def test_marks_of_transactions_are_no_records(tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["replicas"]:
        if row["offset"] == 399:
            row |= {"control": "commit", "value_id": None, "key": None, "intact": None}
    for name in ("sends", "reads"):
        tables[name] = [row for row in tables[name] if row["offset"] != 399]
    assert judged(tmp_path, tables).verdict is Verdict.PASS


def test_damaged_replica_log_yields_no_finding(tmp_path: Path) -> None:
    tables = healthy()
    tables["replicas"] = [
        row for row in tables["replicas"] if row["broker"] != 3 or row["offset"] < 300
    ]
    tables["logs"][2]["log_end"] = 300
    tables["manifest"].append(
        {"file": "nodes/b3/data/urteil-0", "kind": "replica_log", "ended_properly": False}
    )
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN
    assert [
        guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
    ] == []


def test_internal_topics_are_compared_as_well(tmp_path: Path) -> None:
    tables = healthy()
    internal = {"topic_id": "x", "topic": "__consumer_offsets", "partition": 0}
    for broker in (1, 2, 3):
        tables["logs"].append(
            tables["logs"][0] | internal | {"broker": broker, "log_end": 2, "high_watermark": 2}
        )
        tables["replicas"] += [
            tables["replicas"][0]
            | internal
            | {"broker": broker, "offset": n, "value_id": None, "intact": None, "batch_base": n}
            | {"leader_epoch": 0, "epochs": json.dumps({})}
            for n in range(2)
        ]
    assert judged(tmp_path, tables).verdict is Verdict.PASS


def test_shapes_of_many_partitions_hold_too(tmp_path: Path) -> None:
    shape = Shape(records=150, partitions=4)
    assert judged(tmp_path, healthy(shape), shape=shape).verdict is Verdict.PASS


_DIFFERS = {
    "sequence": 7, "producer_id": 5, "producer_epoch": 1, "timestamp_ms": 1, "batch_bytes": 1
}  # fmt: skip


@pytest.mark.parametrize("column", [*_DIFFERS, "control", "transactional"])
def test_difference_on_a_follower_alone_does_not_concern_the_leader(
    tmp_path: Path, column: str
) -> None:
    tables = healthy()
    row = next(r for r in tables["replicas"] if r["broker"] == 2 and r["offset"] == 100)
    row[column] = {"control": "abort", "transactional": True}.get(column) or (
        row[column] + _DIFFERS[column]
    )
    result = judged(tmp_path / "run", tables)
    findings = {
        (g.name, f.sub_kind, f.offset)
        for g in result.guarantees
        for f in g.findings
        if not f.permitted
    }
    assert findings == {("replica_divergence", "bytes", 100)}
