"""Data that should be deleted and is still there is found, where its age is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify.example_runs import ONE, Tables, alone, healthy, topic
from urteil.harness.scenario import ClusterSpec, Phase
from urteil.harness.verify import synthetic
from urteil.harness.verify.derived.retention_promises import retention_columns
from urteil.harness.verify.result import GuaranteeResult, Status
from urteil.harness.verify.synthetic import CRASH_NS, END_NS, TOPIC, S

NAME = "kept_too_long"
BROKERS = {"zookeeper.session.timeout.ms": "1000", "replica.lag.time.max.ms": "1000"}
LOOKS = {"log.retention.check.interval.ms": "1000", "log.initial.task.delay.ms": "1000"}
FAULT = {"fault": "crash", "begin_ns": END_NS + 2 * S, "end_ns": END_NS + 3 * S,
         "healed_ns": END_NS + 4 * S, "proof": "made up", "acted": True}  # fmt: skip


def of_segments(records: int = 200) -> Tables:
    """Healthy tables whose first 200 records are in closed segments of this size."""
    tables = healthy()
    for row in tables["logs"]:
        row["active_base"] = 200
    for row in tables["replicas"]:
        row["segment_base"] = min(200, row["offset"] // records * records)
    for row in tables["states"]:
        row["wall_ms"] = row["at_ns"] // 1_000_000
    return tables


def kept(run_dir: Path, tables: Tables, looks: dict[str, str], **config: str) -> GuaranteeResult:
    asked = synthetic.scenario(ONE, cluster=ClusterSpec(config=BROKERS | looks))
    phases = [Phase(name="during", begin_ns=0, end_ns=END_NS + 60 * S)]
    facts = synthetic.facts(ONE, topics=topic(**config), phases=phases)
    return alone(NAME, run_dir, tables, scenario=asked, facts=facts)


def test_a_closed_segment_outlives_its_retention(tmp_path: Path) -> None:
    (finding,) = kept(tmp_path, of_segments(), LOOKS, retention_ms="4000").findings
    assert (finding.sub_kind, finding.offset) == ("too old", 0)
    assert "s after its last record was older than retention.ms" in finding.sentence


@pytest.mark.parametrize("timeless", [range(200), range(synthetic.BATCH)], ids=["all", "first"])
def test_records_without_time_neither_expire_nor_roll_a_segment(
    tmp_path: Path, timeless: range
) -> None:
    """Messages of magic 0: a segment of them expires by its file's time."""
    tables = of_segments()
    for row in tables["replicas"]:
        if row["offset"] in timeless:
            row["timestamp_ms"] = -1
    config = {"segment_ms": "60000"} | ({"retention_ms": "4000"} if len(timeless) == 200 else {})
    assert not kept(tmp_path, tables, LOOKS, **config).findings


@pytest.mark.parametrize("first_ms", [END_NS // 1_000_000, -1], ids=["younger", "timeless"])
def test_segment_behind_a_younger_one_may_remain(tmp_path: Path, first_ms: int) -> None:
    """Records of a batch that a producer repeated are older than those before them, and a broker
    deletes from the first segment on."""
    tables = of_segments(100)
    for row in tables["replicas"]:
        if row["segment_base"] == 0:
            row["timestamp_ms"] = first_ms
    config = {"retention_ms": "70000" if first_ms > 0 else "4000"}
    findings = kept(tmp_path, tables, LOOKS, **config).findings
    assert not [finding for finding in findings if finding.sub_kind == "too old"]


def test_log_above_its_size_is_a_violation(tmp_path: Path) -> None:
    sized = {"retention_ms": "-1", "retention_bytes": "100"}
    (finding,) = kept(tmp_path, of_segments(100), LOOKS, **sized).findings
    assert (finding.sub_kind, finding.offset) == ("too large", 0)
    assert "two segments more than retention.bytes, 100" in finding.sentence


@pytest.mark.parametrize(
    ("looks", "config"),
    [
        (LOOKS, {"retention_bytes": "1000000000"}),
        (LOOKS, {"retention_bytes": "-1"}),
        (LOOKS, {"retention_bytes": "100", "cleanup_policy": "compact"}),
        ({}, {"retention_bytes": "100"}),
        (LOOKS | {"log.retention.check.interval.ms": "300000"}, {"retention_bytes": "100"}),
    ],
)
def test_log_within_its_size_holds(
    tmp_path: Path, looks: dict[str, str], config: dict[str, str]
) -> None:
    assert not kept(tmp_path, of_segments(100), looks, **config).findings


@pytest.mark.parametrize(
    ("looks", "config"),
    [
        (LOOKS, {"retention_ms": "86400000"}),
        (LOOKS, {"retention_ms": "-1"}),
        (LOOKS, {"retention_ms": "4000", "cleanup_policy": "compact"}),
        (LOOKS, {}),
        ({}, {"retention_ms": "4000"}),
        (LOOKS | {"log.retention.check.interval.ms": "300000"}, {"retention_ms": "4000"}),
    ],
)
def test_segment_within_retention_may_remain(
    tmp_path: Path, looks: dict[str, str], config: dict[str, str]
) -> None:
    assert not kept(tmp_path, of_segments(), looks, **config).findings


def deleted(low: int | None, **row: Any) -> Tables:
    """Records below 40 were to be deleted before the final passes; all is still there."""
    tables = healthy()
    after: dict[str, Any] = {"offsets": {"0": 40}}
    after |= {} if low is None else {"low_watermarks": {"0": low}}
    done = {"act": "delete records", "subject": TOPIC, "outcome": "ok", "before": "{}"}
    times = {"invoke_ns": CRASH_NS, "complete_ns": CRASH_NS + S, "after": json.dumps(after)}
    tables["admin_ops"] = [{"run": "r"} | done | times | row]
    return tables


def kinds(run_dir: Path, tables: Tables) -> set[str]:
    return {finding.sub_kind for finding in alone("undeleted_records", run_dir, tables).findings}


def test_served_deleted_records_are_found(tmp_path: Path) -> None:
    assert kinds(tmp_path / "all", deleted(40)) == {"told", "on a replica"}
    for n, unsure in enumerate((deleted(None), deleted(40, outcome="info"), deleted(0))):
        assert not kinds(tmp_path / str(n), unsure)


def test_follower_log_starts_at_the_leaders_start(tmp_path: Path) -> None:
    """Also after an act whose answer got lost."""
    tables = deleted(None, outcome="info")
    last = tables["states"][-1]["leader"]
    for row in tables["logs"]:
        row["log_start"] = 40 if row["broker"] == last else 0
    assert kinds(tmp_path, tables) == {"on a replica"}


def test_unflushed_log_starts_may_go_back(tmp_path: Path) -> None:
    tables = deleted(40)
    tables["faults"].append({"run": "r"} | FAULT | {"targets": '["b1", "b2", "b3"]'})
    assert not kinds(tmp_path, tables)


def test_pass_with_a_clock_jump_does_not_follow_the_deletion(tmp_path: Path) -> None:
    tables = deleted(40, invoke_ns=END_NS + 61 * S, complete_ns=END_NS + 62 * S)
    for row in tables["logs"]:
        row["log_start"] = 40
    assert not kinds(tmp_path / "before", tables)
    for row in tables["passes"]:
        row["begin_ns"] += 3600 * S
        row["end_ns"] += 3600 * S
    result = alone("undeleted_records", tmp_path / "leapt", tables)
    assert result.findings
    assert (result.status, result.reason) == (
        Status.UNKNOWN,
        "evidence/passes/part-0.parquet: begin_ns is 3561 s after the run: a clock leapt",
    )


def test_deletion_beyond_the_requested_offset_is_found(tmp_path: Path) -> None:
    """DeleteRecords excuses nothing from its offset on."""
    tables = deleted(40)
    for row in tables["logs"]:
        row["log_start"] = 60
    result = alone("retained_too_short", tmp_path, tables)
    assert result.status is Status.VIOLATED
    assert min(finding.offset or 0 for finding in result.findings) == 40


def test_size_limit_that_was_not_reached_excuses_nothing(tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["logs"]:
        row["log_start"] = 60
    sized = topic(retention_ms="604800000", retention_bytes="1000000000")
    facts = synthetic.facts(ONE, topics=sized)
    result = alone("retained_too_short", tmp_path, tables, facts=facts)
    assert result.status is Status.VIOLATED
    assert "retention.bytes 1000000000, of which" in result.findings[0].sentence


@pytest.mark.parametrize(
    ("policy", "looks", "expected"),
    [
        ("compact,delete", {"log.cleaner.backoff.ms": "1000"}, ["too old"]),
        ("compact", {"log.cleaner.backoff.ms": "1000"}, []),
        ("compact,delete", {}, []),
    ],
)
def test_closed_segment_of_a_compacted_log_is_cleaned(
    policy: str, looks: dict[str, str], expected: list[str], tmp_path: Path
) -> None:
    config = {"retention_ms": "4000", "cleanup_policy": policy}
    result = kept(tmp_path, of_segments(), LOOKS | looks, **config)
    assert [finding.sub_kind for finding in result.findings] == expected


def test_cleaner_may_have_stopped_on_a_failed_disk(tmp_path: Path) -> None:
    tables = of_segments()
    tables["faults"][0]["fault"] = "disk_readonly"
    config = {"retention_ms": "4000", "cleanup_policy": "compact,delete"}
    result = kept(tmp_path, tables, LOOKS | {"log.cleaner.backoff.ms": "1000"}, **config)
    assert not result.findings


@pytest.mark.parametrize(
    ("own", "looks"),
    [("delete", "log.retention.check.interval.ms"), ("compact", "log.cleaner.backoff.ms")],
)
@pytest.mark.parametrize("of_brokers", ["delete", "compact"])
def test_topic_policy_sets_the_interval_of_log_checks(
    own: str, looks: str, of_brokers: str
) -> None:
    config = {"log.cleanup.policy": of_brokers, looks: "1000", "log.initial.task.delay.ms": "0"}
    scenario = synthetic.scenario(ONE, cluster=ClusterSpec(config=config))
    (fact,) = topic(cleanup_policy=own)
    columns = retention_columns(fact, scenario, synthetic.facts(ONE), [], [])
    assert columns["late_ns"] == S


def test_log_left_dirty_by_due_cleaning_is_a_violation(tmp_path: Path) -> None:
    """Fifty keys, again and again, in closed segments."""
    cleaner = {"log.cleaner.backoff.ms": "1000"}
    config = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.1"}
    (finding,) = kept(tmp_path, of_segments(20), cleaner, **config).findings
    assert (finding.sub_kind, finding.offset) == ("superseded", 0)
    assert "were dirty, more than min.cleanable.dirty.ratio" in finding.sentence


@pytest.mark.parametrize(
    ("looks", "config"),
    [
        ({"log.cleaner.backoff.ms": "1000"}, {}),
        ({"log.cleaner.backoff.ms": "1000"}, {"min_cleanable_dirty_ratio": "1.0"}),
        ({"log.cleaner.backoff.ms": "300000"}, {"min_cleanable_dirty_ratio": "0.1"}),
        (
            {"log.cleaner.backoff.ms": "1000"},
            {"min_cleanable_dirty_ratio": "0.1", "min_compaction_lag_ms": "3600000"},
        ),
        ({}, {"min_cleanable_dirty_ratio": "0.1"}),
    ],
)
def test_log_not_due_for_cleaning_may_be_dirty(
    tmp_path: Path, looks: dict[str, str], config: dict[str, str]
) -> None:
    tables = of_segments(20)
    assert not kept(tmp_path, tables, looks, cleanup_policy="compact", **config).findings


def test_cleaned_log_holds(tmp_path: Path) -> None:
    tables = of_segments(20)
    last = {row["key"]: row["offset"] for row in tables["replicas"] if row["offset"] < 200}
    tables["replicas"] = [
        row | {"segment_base": row["segment_base"] // 200 * 200}
        for row in tables["replicas"]
        if row["offset"] in {*last.values(), *range(200, 1000)}
    ]
    config = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.1"}
    result = kept(tmp_path, tables, {"log.cleaner.backoff.ms": "1000"}, **config)
    assert (result.status, result.opportunities) == (Status.HOLDS, 1)
