"""Attributes of records beside their content, and records without a place, are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.verify import example_runs
from tests.harness.verify.example_runs import ONE, Tables, healthy, judged, named
from urteil.harness.scenario import RunFacts
from urteil.harness.verify import synthetic
from urteil.harness.verify.result import Result, Status, Verdict

LAST = ONE.records - 1
_WITHOUT_TIMES = {"sends": Verdict.PASS, "reads": Verdict.PASS, "replicas": Verdict.UNKNOWN}
"""The judgement of evidence in which a table's records have no timestamps; on disks, all have."""


def _accused(result: Result) -> set[tuple[str, str, int | None]]:
    return {
        (guarantee.name, finding.sub_kind, finding.offset)
        for guarantee in result.guarantees
        for finding in guarantee.findings
        if not finding.permitted
    }


def _rows(tables: Tables, table: str, offset: int, **have: Any) -> list[dict[str, Any]]:
    return [
        row
        for row in tables[table]
        if row["offset"] == offset and all(row[name] == value for name, value in have.items())
    ]


def _stamped() -> RunFacts:
    facts = synthetic.facts(ONE)
    facts.topics[:] = example_runs.topic(message_timestamp_type="LogAppendTime")
    return facts


@pytest.mark.parametrize("where", ["a read", "every replica", "everywhere"])
def test_record_with_changed_time_is_corrupt(where: str, tmp_path: Path) -> None:
    tables = healthy()
    if where != "a read":
        for row in _rows(tables, "replicas", 100):
            row["timestamp_ms"] += 1
    for row in _rows(tables, "reads", 100)[: {"a read": 1, "everywhere": None}.get(where, 0)]:
        row["timestamp_ms"] -= 1
    result = judged(tmp_path / "run", tables)
    (finding,) = named(result, "corrupt").findings
    assert finding.offset == 100
    assert finding.sub_kind == ("on disk" if where == "every replica" else "served")
    assert named(judged(tmp_path / "stamped", tables, facts=_stamped()), "corrupt").violations == 0


def test_unknown_time_yields_no_finding(tmp_path: Path) -> None:
    """Some clients receive no timestamp, and Apache Kafka's tools send one that they do not
    report."""
    for name, verdict in _WITHOUT_TIMES.items():
        tables = healthy()
        for row in tables[name]:
            row["timestamp_ms"] = None
        result = judged(tmp_path / name, tables)
        accused = {
            guarantee.name for guarantee in result.guarantees if guarantee.status is Status.VIOLATED
        }
        assert (accused, name, result.verdict) == (set(), name, verdict)
    tables = healthy()
    for row in tables["sends"]:
        row |= {"timestamp_ms": row["timestamp_ms"] + 3, "attempts": None}
    for client in tables["clients"]:
        client["library"] = "verifiable"
    assert _accused(judged(tmp_path / "tool", tables)) == set()


def test_acknowledgement_of_a_duplicate_has_its_batchs_time(tmp_path: Path) -> None:
    """Then a read is compared with the log."""
    tables = healthy()
    for row in tables["sends"][90:110]:
        row |= {"attempts": 2, "ambiguous": True, "timestamp_ms": row["timestamp_ms"] + 60}
    assert _accused(judged(tmp_path / "healthy", tables)) == set()
    _rows(tables, "reads", 100)[0]["timestamp_ms"] += 60
    assert _accused(judged(tmp_path / "read", tables)) == {("corrupt", "served", 100)}


@pytest.mark.parametrize("most", [False, True])
def test_acknowledgement_has_the_time_of_its_record(most: bool, tmp_path: Path) -> None:
    """Unless the record itself has the timestamp with which it was sent."""
    tables = healthy()
    reported_rows = tables["sends"][100 : 300 if most else 101]
    for row in reported_rows:
        row["timestamp_ms"] = 7
    result = judged(tmp_path, tables)
    assert {kind for _, kind, _ in _accused(result)} == {"another time"}
    assert named(result, "misplaced_ack").violations == len(reported_rows)


def test_single_send_is_acknowledged_with_an_offset(tmp_path: Path) -> None:
    """A batch that was sent again may be known for a duplicate, and no more."""
    tables = healthy()
    tables["sends"][100]["offset"] = None
    tables["sends"][200] |= {"offset": None, "attempts": 2}
    (finding,) = named(judged(tmp_path, tables), "misplaced_ack").findings
    assert (finding.sub_kind, finding.records[0]["value_id"]) == ("without offset", "r/p1/100")


def test_change_of_the_timestamp_type_yields_no_finding(tmp_path: Path) -> None:
    tables = healthy()
    for name in ("reads", "replicas"):
        for row in tables[name]:
            row |= {"timestamp_ms": row["timestamp_ms"] + row["offset"] // 300, "intact": None}
    act = {"act": "config", "subject": synthetic.TOPIC, "outcome": "ok", "before": None}
    act |= {"invoke_ns": synthetic.BEGIN_NS, "complete_ns": synthetic.BEGIN_NS + 1}
    act["after"] = '{"message.timestamp.type": "LogAppendTime"}'
    assert named(judged(tmp_path / "own", tables), "corrupt").violations == 100
    tables["admin_ops"] = [act]
    assert named(judged(tmp_path / "reported", tables), "corrupt").violations == 0


@pytest.mark.parametrize("offset", [0, 150, LAST])
@pytest.mark.parametrize("shown", [-1, 1, 4])
def test_read_has_the_leader_epoch_of_the_log(offset: int, shown: int, tmp_path: Path) -> None:
    """Or the later epoch of the serving leader, but no older one and none that never existed."""
    tables = healthy()
    row = _rows(tables, "reads", offset)[0]
    row["leader_epoch"] += shown
    accused = _accused(judged(tmp_path, tables))
    is_reported = (
        row["leader_epoch"] >= 0 and shown != 1
    )  # a client without a reported epoch has none
    assert accused == ({("epoch_lineage", "read", offset)} if is_reported else set())


def test_foreign_times_of_sends_yield_no_finding(tmp_path: Path) -> None:
    tables = healthy()
    for row in tables["sends"]:
        row |= {"timestamp_ms": row["timestamp_ms"] + 3, "attempts": None}
    assert _accused(judged(tmp_path, tables)) == set()


def test_epoch_with_cleaned_first_records_may_begin_later(tmp_path: Path) -> None:
    """A replica that fetched a cleaned log: its epoch begins with the first that was left."""
    tables = healthy()
    for row in tables["logs"]:
        row["epochs"] = row["epochs"].replace("200", "207")
    tables["replicas"] = [row for row in tables["replicas"] if not 200 <= row["offset"] < 207]
    facts = synthetic.facts(ONE, topics=example_runs.topic(cleanup_policy="compact"))
    accused = _accused(judged(tmp_path, tables, facts=facts))
    assert "epoch_lineage" not in {name for name, _, _ in accused}


def _lost_at_the_tail(tables: Tables) -> None:
    """The log correctly begins at 40, and its last record, acknowledged without an offset, is
    missing."""
    for name in ("reads", "replicas"):
        tables[name] = [
            row
            for row in tables[name]
            if 40 <= row["offset"] < LAST or (row.get("client") == "c0" and row["offset"] < LAST)
        ]
    for row in tables["logs"]:
        row |= {"log_start": 40, "log_end": LAST, "high_watermark": LAST}
    for row in tables["passes"]:
        row |= {"from_offset": 40 if row["final"] else 0, "to_offset": LAST}


@pytest.mark.parametrize("early", [False, True])
def test_loss_without_offset_in_a_log_with_late_begin(early: bool, tmp_path: Path) -> None:
    """Sent before all that the log still has, it may have stood below the log's begin."""
    tables = healthy()
    _lost_at_the_tail(tables)
    (send,) = _rows(tables, "sends", LAST)
    send["offset"] = None
    if early:
        (first,) = _rows(tables, "sends", 39)
        send |= {name: first[name] for name in ("invoke_ns", "complete_ns")}
    facts = synthetic.facts(ONE)
    facts.topics[:] = example_runs.topic(retention_ms="1000")
    lost = named(judged(tmp_path, tables, facts=facts), "lost_write")
    assert lost.status is (Status.HOLDS if early else Status.VIOLATED)
    assert [finding.records[0]["value_id"] for finding in lost.findings] == (
        [] if early else [send["value_id"]]
    )
