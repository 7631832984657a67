"""Histories whose evidence is incomplete without a trace do not pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.verify.example_runs import Tables, healthy, judged, named
from urteil.harness.verify.result import Status, Verdict
from urteil.harness.verify.synthetic import BEGIN_NS, TOPIC

STATE = f"/brokers/topics/{TOPIC}/partitions/0/state"


def _at(tables: Tables, table: str, offset: int) -> list[dict[str, object]]:
    return [row for row in tables[table] if row["offset"] == offset]


def _cut_the_head(tables: Tables) -> None:
    """All logs start at 50, as if retention had been there."""
    tables["replicas"] = [row for row in tables["replicas"] if row["offset"] >= 50]
    tables["reads"] = [
        row for row in tables["reads"] if row["offset"] >= 50 or row["client"] != "final"
    ]
    for row in tables["logs"]:
        row["log_start"] = 50
    for row in tables["passes"]:
        row["from_offset"] = max(50, row["from_offset"]) if row["final"] else row["from_offset"]


def _cut_the_head_and_say_so(tables: Tables) -> None:
    """An administrator's DeleteRecords, which was refused."""
    _cut_the_head(tables)
    act = {
        "act": "DeleteRecords",
        "outcome": "fail",
        "subject": f"{TOPIC}-0",
        "after": '{"offsets": {"0": 50}}',
    }
    tables["admin_ops"] = [{"invoke_ns": BEGIN_NS, "complete_ns": BEGIN_NS + 1, **act}]


@pytest.mark.parametrize("damage", [_cut_the_head, _cut_the_head_and_say_so])
def test_default_retention_deletes_nothing_within_a_minute(
    damage: Callable[[Tables], None], tmp_path: Path
) -> None:
    tables = healthy()
    damage(tables)
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.FAIL
    limit = named(result, "retained_too_short")
    assert limit.status is Status.VIOLATED
    assert limit.findings[0].sentence.endswith("retention.ms is 604800000.")


def _read_nothing_in_the_end(tables: Tables) -> None:
    tables["reads"] = [row for row in tables["reads"] if row["client"] != "final"]
    for row in tables["passes"]:
        row["from_offset"] = row["to_offset"] if row["final"] else row["from_offset"]


def _skip_a_version(tables: Tables) -> None:
    tables["states"] = [row for row in tables["states"] if row["version"] != 2]


def _tell_of_another_topic(tables: Tables) -> None:
    for row in tables["states"]:
        row["topic_id"] = "another"


def _lose_a_replica(tables: Tables) -> None:
    for table in ("logs", "replicas"):
        tables[table] = [row for row in tables[table] if row["broker"] != 2]


def _make_with_two_replicas(tables: Tables) -> None:
    """As by a controller that does not create the requested replicas."""
    _lose_a_replica(tables)
    for row in tables["states"]:
        row |= {"replicas": "[1, 3]" if row["replicas"] else None}


def _make_with_a_stranger_in_the_isr(tables: Tables) -> None:
    for row in tables["states"]:
        row |= {"replicas": "[1, 3, 4]" if row["replicas"] else None}


def _end_the_logs_early(tables: Tables) -> None:
    for row in tables["logs"]:
        row |= {"log_end": 300, "high_watermark": 300}


def _forget_if_intact(tables: Tables) -> None:
    for row in _at(tables, "reads", 130)[:2]:
        row["intact"] = None


def _forget_an_epoch(tables: Tables) -> None:
    _at(tables, "replicas", 130)[0]["leader_epoch"] = None


def _forget_a_crc(tables: Tables) -> None:
    _at(tables, "replicas", 130)[0]["batch_crc"] = None


def _read_as_a_ghost(tables: Tables) -> None:
    for row in tables["reads"]:
        row["client"] = "ghost" if row["client"] == "c0" else row["client"]


def _send_as_a_ghost(tables: Tables) -> None:
    tables["clients"] = [row for row in tables["clients"] if row["client"] != "p1"]


def _send_in_a_ghost_of_a_transaction(tables: Tables) -> None:
    for row in tables["sends"][:5]:
        row["txn"] = 77


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (_read_nothing_in_the_end, f"the final passes over {TOPIC}-0 cover nothing of it"),
        (_skip_a_version, f"{STATE} went from version 1 to 3: evidence/states lacks"),
        (_tell_of_another_topic, f"evidence/states has nothing about {TOPIC}-0"),
        (_lose_a_replica, f"evidence/logs has no log of broker 2 of {TOPIC}-0"),
        (
            _make_with_two_replicas,
            f"{TOPIC}-0 was created on brokers 1, 3, though 3 were requested",
        ),
        (
            _make_with_a_stranger_in_the_isr,
            f"{STATE}: brokers 2 are in the first ISR and never were replicas (evidence/states)",
        ),
        (_end_the_logs_early, "300 stored records beyond the end of their log"),
        (
            _forget_if_intact,
            "evidence/reads/part-0.parquet: it has rows without intact",
        ),
        (
            _forget_an_epoch,
            "1 stored record without batch_crc or offset or leader_epoch in topics",
        ),
        (
            _forget_a_crc,
            "1 stored record without batch_crc or offset or leader_epoch in topics",
        ),
        (_read_as_a_ghost, "400 reads of clients that evidence/clients does not have"),
        (_send_as_a_ghost, "200 sends of clients that evidence/clients does not have"),
        (
            _send_in_a_ghost_of_a_transaction,
            "5 sends of transactions that evidence/txns does not have",
        ),
    ],
)
@pytest.mark.usefixtures("few")
def test_contradictory_evidence_is_unknown_and_named(
    damage: Callable[[Tables], None], reason: str, tmp_path: Path
) -> None:
    tables = healthy()
    damage(tables)
    result = judged(tmp_path, tables)
    assert result.verdict is Verdict.UNKNOWN, result.reasons
    assert any(text.startswith(reason) for text in result.reasons), result.reasons


@pytest.mark.usefixtures("few")
def test_removed_replica_needs_no_log(tmp_path: Path) -> None:
    tables = healthy()
    last = max(tables["states"], key=lambda row: int(row["zxid"]))
    _lose_a_replica(tables)
    assigned = dict.fromkeys(("partition", "leader", "leader_epoch", "isr"))
    after = {"zxid": last["zxid"] + 1, "path": f"/brokers/topics/{TOPIC}", "version": 1}
    tables["states"].append(last | assigned | after | {"replicas": '{"0": [1, 3]}'})
    reasons = judged(tmp_path, tables).reasons
    assert not any("evidence/logs has no log" in reason for reason in reasons), reasons


def test_isr_has_replicas_alone(tmp_path: Path) -> None:
    """A former replica may be in the ISR: a cancelled reassignment leaves it there for a moment."""
    tables = healthy()
    first = tables["states"][0]
    before = {"zxid": first["zxid"] - 1, "path": f"/brokers/topics/{TOPIC}", "isr": None}
    before |= {"partition": None, "leader_epoch": None, "replicas": '{"0": [1, 2, 3, 4]}'}
    for row in tables["states"][-1:]:
        row["isr"] = "[1, 2, 3, 4]"
    result = named(judged(tmp_path / "never", tables), "unclean_leader")
    (finding,) = result.findings
    assert (result.status, finding.sub_kind) == (Status.VIOLATED, "no replica")
    assert "[1,2,3,4], though broker 4 never was one of its replicas" in finding.sentence
    tables["states"].insert(0, first | before)
    assert named(judged(tmp_path / "once", tables), "unclean_leader").findings == []


def test_leader_epoch_absent_from_all_logs_is_none(tmp_path: Path) -> None:
    tables = healthy()
    for row in _at(tables, "replicas", 130):
        row["leader_epoch"] = 77
    (finding,) = named(judged(tmp_path, tables), "epoch_lineage").findings
    assert (finding.sub_kind, finding.offset) == ("of none", 130)


def test_reported_log_start_outside_the_logs_is_found(tmp_path: Path) -> None:
    tables = healthy()
    place = {name: tables["sends"][0][name] for name in ("run", "topic_id", "topic", "partition")}
    asked = {"node": 1, "invoke_ns": BEGIN_NS, "complete_ns": BEGIN_NS + 1, "api_version": 7}
    tables["offset_answers"] = [place | asked | {"query": "earliest", "offset": 1}]
    result = judged(tmp_path / "late", tables)
    (finding,) = named(result, "unseen").findings
    assert (finding.sub_kind, finding.offset) == ("told too late", 0)
    assert "Broker 1 reported that urteil-0 begins at 1, although every" in finding.sentence
    tables["offset_answers"][0]["offset"] = 0
    assert judged(tmp_path / "right", tables).verdict is Verdict.PASS
    tables["offset_answers"][0]["offset"] = 50
    _cut_the_head(tables)
    assert named(judged(tmp_path / "deleted", tables), "unseen").findings == []
