"""A pipeline's output is compared with its input: missing and doubled records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.verify.example_runs import Tables
from tests.harness.verify.guarantees.groups.test_group_guarantees import Judged, healthy, judge
from urteil.harness.scenario import TopicFact
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import Status
from urteil.harness.verify.synthetic import END_NS, S, Shape

NAMES = ("unprocessed", "processed_twice", "phantom")
ONE = Shape(records=400, partitions=1)
OUT = {"run": "r", "topic_id": "out", "topic": "urteil-out", "partition": 0}


def copied(values: list[str]) -> Tables:
    """Healthy evidence, and an output topic with copies of these values in this order."""
    tables = healthy()
    who = {"client": "final", "session": 0, "pass": 77}
    tables["passes"].append(
        OUT | who | {"from_offset": 0, "to_offset": len(values), "final": True, "complete": True}
        | {"isolation": "read_committed", "leader": 1, "begin_ns": END_NS, "end_ns": END_NS + S}
    )  # fmt: skip
    for offset, value in enumerate(values):
        tables["reads"].append(
            OUT | who | {"offset": offset, "value_id": f"copy/{value}", "key": "k", "intact": True}
            | {"poll": 9_000_000 + offset, "position_in_poll": 0, "read_ns": END_NS + S}
        )  # fmt: skip
    return tables


def values() -> list[str]:
    return [row["value_id"] for row in healthy()["sends"]]


def judged(
    run_dir: Path,
    tables: Tables,
    config: dict[str, str] | None = None,
    brokers: dict[str, str] | None = None,
    **options: str,
) -> Judged:
    scenario, run_facts = synthetic.scenario(ONE), synthetic.facts(ONE)
    load = msgspec.structs.replace(scenario.workload, options=options)
    out: dict[str, Any] = {"partitions": 1, "replication_factor": 3, "copies": True}
    out |= {"config": config or {}}
    run_facts.topics.append(TopicFact(name="urteil-out", topic_id="out", **out))
    of_all = msgspec.structs.replace(
        scenario.cluster, config=scenario.cluster.config | (brokers or {})
    )
    scenario = msgspec.structs.replace(scenario, workload=load, cluster=of_all)
    return judge(run_dir, tables, scenario, run_facts, NAMES)


def test_complete_single_copies_have_no_finding(tmp_path: Path) -> None:
    result = judged(tmp_path, copied(values()), promise="exactly-once")
    assert {outcome.status for outcome in result.values()} == {Status.HOLDS}


def test_without_an_application_nothing_is_judged(tmp_path: Path) -> None:
    scenario, run_facts = synthetic.scenario(ONE), synthetic.facts(ONE)
    result = judge(tmp_path, healthy(), scenario, run_facts, NAMES)
    assert result["unprocessed"].status is Status.NOT_JUDGED
    assert result["processed_twice"].status is Status.NOT_JUDGED


def test_record_never_copied_is_found(tmp_path: Path) -> None:
    all_values = values()
    result = judged(tmp_path, copied(all_values[:40] + all_values[41:]))
    (finding,) = result["unprocessed"].findings
    assert (result["unprocessed"].status, finding.offset) == (Status.VIOLATED, 40)
    assert f"{all_values[40]} at urteil-0@40 was never copied" in finding.sentence


def test_at_most_once_permits_missing_records(tmp_path: Path) -> None:
    result = judged(tmp_path, copied(values()[5:]), promise="at-most-once")
    assert result["unprocessed"].status is Status.PERMITTED


def test_record_copied_twice_is_found(tmp_path: Path) -> None:
    all_values = values()
    for promise, status in (
        ("exactly-once", Status.VIOLATED),
        ("at-most-once", Status.VIOLATED),
        ("at-least-once", Status.PERMITTED),
    ):
        result = judged(tmp_path / promise, copied([*all_values, all_values[40]]), promise=promise)
        assert result["processed_twice"].status is status
        assert result["unprocessed"].status is Status.HOLDS
    (finding,) = result["processed_twice"].findings
    assert "twice in the output, first at offset 40, last at 400" in finding.sentence


def test_copy_of_an_unsent_record_is_a_violation(tmp_path: Path) -> None:
    result = judged(tmp_path, copied([*values(), "r/p0/99999"]))
    (finding,) = result["phantom"].findings
    assert (finding.sub_kind, finding.topic, finding.offset) == ("no invocation", OUT["topic"], 400)
    assert "copy/r/p0/99999" in finding.sentence


def test_duplicate_input_may_be_duplicate_output(tmp_path: Path) -> None:
    """A producer without idempotence may send a record twice; the application cannot know."""
    all_values = values()
    tables = copied([*all_values[:40], all_values[4], *all_values[40:]])
    for table in ("replicas", "reads"):
        again = next(row for row in tables[table] if row.get("value_id") == all_values[4])
        for row in tables[table]:
            if row["offset"] == 40 and row.get("value_id") == all_values[40]:
                row |= {"value_id": all_values[4], "key": again["key"]}
    tables["sends"] = [row for row in tables["sends"] if row["value_id"] != all_values[40]]
    result = judged(tmp_path, tables, promise="exactly-once")
    assert result["processed_twice"].violations == 0
    tables = copied([*all_values[:40], all_values[4], *all_values[40:]])
    result = judged(tmp_path / "once", tables, promise="exactly-once")
    assert [finding.offset for finding in result["processed_twice"].findings] == [4]


@pytest.mark.parametrize(("commits", "missing"), [(False, 0), (True, 1)])
def test_an_aborted_record_of_the_input_is_not_copied(
    commits: bool, missing: int, tmp_path: Path
) -> None:
    all_values = values()
    tables = copied(all_values[:40] + all_values[41:])
    (send,) = (row for row in tables["sends"] if row["value_id"] == all_values[40])
    send["txn"] = 7
    end_ns = send["complete_ns"] + S
    tables["txns"] = [
        {"run": "r", "client": send["client"], "session": 0, "txn": 7, "transactional_id": "x"}
        | {"begin_ns": send["invoke_ns"] - 1, "end_ns": end_ns}
        | {"commit_invoke_ns": end_ns - 1 if commits else None}
        | {"outcome": "committed" if commits else "aborted"}
    ]
    result = judged(tmp_path, tables, promise="exactly-once")
    assert result["unprocessed"].violations == missing


def _log_of_the_output(tables: Tables, start: int, end: int) -> None:
    log = OUT | {"broker": 1, "log_start": start, "log_end": end, "high_watermark": end}
    tables["logs"].append(log | {"epochs": "{}"})
    tables["passes"][-1]["from_offset"] = start
    tables["reads"] = [
        row for row in tables["reads"] if row["topic_id"] != "out" or row["offset"] >= start
    ]


def test_copy_deleted_by_retention_counts_as_present(tmp_path: Path) -> None:
    """The run ends 90 s after its first record: records older than 88 s may be deleted then."""
    all_values = values()
    tables = copied(all_values[:300] + all_values[301:])
    _log_of_the_output(tables, 20, 399)
    findings = judged(tmp_path, tables, {"retention.ms": "88000"})["unprocessed"].findings
    assert [finding.offset for finding in findings] == [300]
    findings = judged(tmp_path / "bytes", tables, {"retention.bytes": "5000"})[
        "unprocessed"
    ].findings
    assert findings == []


def test_copy_may_be_compacted_by_another_copy_of_its_key(tmp_path: Path) -> None:
    all_values = values()
    tables = copied(all_values[:40] + all_values[41:])
    compact = {"cleanup.policy": "compact"}
    assert judged(tmp_path, tables, compact)["unprocessed"].violations == 0
    for table in ("sends", "reads", "replicas"):
        for row in tables[table]:
            row["key"] = "sole" if row.get("value_id") == all_values[40] else row["key"]
    (finding,) = judged(tmp_path / "sole", tables, compact)["unprocessed"].findings
    assert finding.offset == 40


@pytest.mark.parametrize("topic", ["urteil-out", "__consumer_offsets", "urteil-other"])
def test_unclean_election_may_lose_output_or_positions(topic: str, tmp_path: Path) -> None:
    """Broker 2 was not in sync, and was elected; another topic's elections do not excuse it."""
    all_values = values()
    tables = copied([*all_values[:40], *all_values[41:], all_values[50]])
    last = {"run": "r", "topic": topic, "topic_id": "out", "partition": 0, "controller_epoch": 1}
    if topic != "urteil-out":
        last |= {"topic_id": topic}
    path = f"/brokers/topics/{topic}/partitions/0/state"
    for number, (leader, isr) in enumerate(((1, "[1]"), (2, "[2]"))):
        tables["states"].append(
            last | {"zxid": 9000 + number, "version": number, "at_ns": END_NS + number * S}
            | {"leader": leader, "leader_epoch": number, "isr": isr, "path": path}
            | {"replicas": "[1, 2]"}
        )  # fmt: skip
    config = {"unclean.leader.election.enable": "true"} if topic == "urteil-out" else None
    cluster_config = {"unclean.leader.election.enable": "true"}
    result = judged(tmp_path, tables, config, cluster_config, promise="exactly-once")
    spoilt = topic != "urteil-other"
    for name, offset in (("unprocessed", 40), ("processed_twice", 50)):
        (finding,) = result[name].findings
        assert (finding.offset, finding.permitted is not None) == (offset, spoilt), name
