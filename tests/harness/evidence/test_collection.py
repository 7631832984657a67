"""Journals, disks and faults become tables with the schema's columns, completely or not at all."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

from tests.broker.log.old_folders import Row, old_messages
from tests.harness.evidence.test_replica_logs import TOPIC_ID, batch, values
from urteil.chaos.admin_controls import ActFailed
from urteil.chaos.link_rules import LINK_EVENTS, RuleHit
from urteil.harness import host_clocks
from urteil.harness.cluster.administration.act_log import ActLog
from urteil.harness.evidence.collection import collect
from urteil.harness.evidence.journal import (
    Assigned,
    Begin,
    Commit,
    CommitEntry,
    CommitRead,
    Committed,
    Fail,
    Got,
    Info,
    JournalWriter,
    OffsetAnswer,
    Ok,
    PassBegin,
    PassEnd,
    Poll,
    Send,
    Slice,
    View,
)
from urteil.harness.evidence.schema import SCHEMAS
from urteil.harness.evidence.table_writer import ROW_GROUP, Evidence
from urteil.harness.host_clocks import WALL_OFFSET
from urteil.harness.scenario import RunFacts, TopicFact, save


def begin(client, kind):
    return Begin(
        run="r1", client=client, session=1, kind=kind, at_ns=5, wall_ns=1_000_005, boot_id="boot",
        pid=9, library="kafka-python", version="3", topic_ids={"orders": TOPIC_ID},
        acks=-1 if kind == "producer" else None, idempotent=True if kind == "producer" else None,
        group="g" if kind == "group" else None, isolation="read_uncommitted",
    )  # fmt: skip


def done(kind, op, error=None, offset=None):
    return kind(op, 20 + op, error, 1, False, 0, offset, 2, 5, 1, op, None)


def journal(run_dir, client, entries, *, end=True):
    (run_dir / "journal").mkdir(exist_ok=True)
    with JournalWriter(run_dir / "journal" / f"{client}.jsonl") as writer:
        for entry in entries:
            writer.write(entry)
        if end:
            writer.end(99)


def rows(run_dir, table):
    return pq.read_table(run_dir / "evidence" / table).to_pylist()


@pytest.fixture
def run_dir(tmp_path):
    topic = TopicFact(name="orders", topic_id=TOPIC_ID, partitions=1, replication_factor=1)
    facts = RunFacts(run="r1", seed=1, scenario="s", target="urteil", runtime="process",
                     boot_id="boot", command="urteil run s", topics=[topic])  # fmt: skip
    save(tmp_path / "run.json", facts)
    sends = [Send(op, 10 + op, "orders", 0, "k", 1000 + op) for op in range(4)]
    ends = [done(Ok, 0, offset=0), done(Fail, 1, "MessageSizeTooLargeError"),
            done(Info, 2, "KafkaTimeoutError")]  # fmt: skip
    journal(tmp_path, "p1", [begin("p1", "producer"), *sends, *ends])
    got = [Got(n, "k", f"r1/p1/{n}", True, 0, 1000 + n) for n in range(2)]
    journal(tmp_path, "c1", [
        begin("c1", "consumer"),
        OffsetAnswer(1, 2, "latest", "orders", 0, 2, 1, None),
        PassBegin(0, "orders", 0, 3, 0, 2, "read_uncommitted", True),
        PassBegin(1, "orders", 0, 3, 0, None, "read_uncommitted", False),
        Poll(1, 4, 5, "ok", None, None, [Slice("orders", 0, 0, 0, 2, None, got)]),
        Poll(2, 6, 7, "info", "KafkaTimeoutError", None, []),
        PassEnd(0, "orders", 0, 8, 2, True, 1),
    ])  # fmt: skip
    journal(tmp_path, "g1", [
        begin("g1", "group"),
        Assigned(1, "assigned", 3, "m1", [("orders", 0)]),
        CommitRead(2, 3, "ok", None, 3, "m1", "orders", 0, None),
        Commit(1, 4, 3, "m1", [CommitEntry("orders", 0, 2, 2)]),
        Committed(1, 5, "ok", None),
        Commit(2, 6, 3, "m1", [CommitEntry("orders", 0, 3, 3)]),
    ], end=False)  # fmt: skip
    folder = tmp_path / "nodes" / "b1" / "data" / "orders-0"
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(batch(0, values(0, 2)) + b"junk")
    fault = {"fault": "crash", "targets": ["b1"], "begin_ns": 1, "end_ns": 2, "healed_ns": 3,
             "proof": "pid 7", "acted": True, "more": 1}  # fmt: skip
    (tmp_path / "faults.jsonl").write_text(json.dumps(fault) + "\n{cut")
    with ActLog(tmp_path).act("config", "orders", {"retention.ms": None}) as after:
        after["retention.ms"] = "2000"
    return tmp_path


def test_every_table_is_there_with_its_columns(run_dir):
    collected = collect(run_dir)
    for table, schema in SCHEMAS.items():
        assert pq.read_table(run_dir / "evidence" / table).schema.equals(schema)
        assert len(rows(run_dir, table)) == collected.rows.get(table, 0)
    assert not list((run_dir / "evidence").rglob("*.part"))


def test_requests_on_which_faults_acted_are_evidence(run_dir):
    hit = RuleHit(
        at_ns=5, link="client->b1", direction="answer", api="EndTxn", version=3, correlation_id=7,
        client_id="t1", act="drop", occurrence=2,
    )  # fmt: skip
    lines = [json.dumps(hit.row("lose_answer")), "{cut"]
    (run_dir / LINK_EVENTS).write_text("\n".join(lines))
    collected = collect(run_dir)
    (row,) = rows(run_dir, "link_events")
    assert {name: row[name] for name in ("fault", "api", "occurrence", "detail")} == {
        "fault": "lose_answer", "api": "EndTxn", "occurrence": 2, "detail": ""
    }  # fmt: skip
    assert f"{LINK_EVENTS}: an entry is damaged" in "\n".join(collected.problems)


def test_clocks_of_hosts_are_samples(run_dir):
    row = {"at_ns": 7, "source": "alpha", "metric": WALL_OFFSET, "labels": "{}", "value": 0.25}
    (run_dir / host_clocks.FILE).write_text(f'{json.dumps(row)}\n{{"at_ns": 8, "sou')
    for _ in range(2):
        collected = collect(run_dir)
        found = [one for one in rows(run_dir, "samples") if one["metric"] == WALL_OFFSET]
        assert [(one["source"], one["value"]) for one in found] == [("alpha", 0.25)]
    assert not any(host_clocks.FILE in problem for problem in collected.problems)


def test_old_messages_are_evidence_and_no_problem(run_dir):
    """A cluster that has data of releases before 0.11 beside the run's."""
    folder = run_dir / "nodes" / "b1" / "data" / "clicks-0"
    folder.mkdir()
    data = old_messages(0, 1, [Row(n, -1, b"k%d" % n, b"v") for n in range(3)])
    data += old_messages(1, 2, [Row(n, 1000 + n, None, b"v") for n in range(3, 5)])
    (folder / f"{0:020d}.log").write_bytes(data)
    collected = collect(run_dir)
    stored = [row for row in rows(run_dir, "replicas") if row["topic"] == "clicks"]
    assert [row["offset"] for row in stored] == list(range(5))
    assert [row["timestamp_ms"] for row in stored] == [-1, -1, -1, 1003, 1004]
    assert not [problem for problem in collected.problems if "clicks" in problem]


def test_sends_keep_their_outcome(run_dir):
    collect(run_dir)
    sends = {row["op"]: row for row in rows(run_dir, "sends")}
    assert [sends[op]["outcome"] for op in range(4)] == ["ok", "fail", "info", "info"]
    assert sends[3]["complete_ns"] is None
    assert sends[3]["ambiguous"]
    assert sends[0]["value_id"] == "r1/p1/0"
    assert (sends[0]["offset"], sends[0]["node"], sends[0]["sequence"]) == (0, 2, 0)
    assert (sends[0]["topic_id"], sends[0]["acks"], sends[0]["idempotent"]) == (TOPIC_ID, -1, True)
    assert all(row["run"] == "r1" for row in sends.values())


def test_readers(run_dir):
    collect(run_dir)
    assert [row["value_id"] for row in rows(run_dir, "reads")] == ["r1/p1/0", "r1/p1/1"]
    passes = {row["pass"]: row for row in rows(run_dir, "passes")}
    assert (passes[0]["to_offset"], passes[0]["complete"], passes[0]["leader"]) == (2, True, 1)
    assert (passes[1]["to_offset"], passes[1]["complete"]) == (0, False)
    assert [row["outcome"] for row in rows(run_dir, "polls")] == ["ok", "info"]
    assert rows(run_dir, "offset_answers")[0]["offset"] == 2
    kinds = {row["client"]: row["kind"] for row in rows(run_dir, "clients")}
    assert kinds == {"p1": "producer", "c1": "consumer", "g1": "group"}


def test_final_pass_with_a_lost_position_is_incomplete(run_dir):
    journal(run_dir, "final-1", [
        begin("final-1", "final"),
        PassBegin(0, "orders", 0, 3, 0, 9, "read_uncommitted", True),
        PassEnd(0, "orders", 0, 8, 2, True, 1),
    ])  # fmt: skip
    collect(run_dir)
    (final_pass,) = [row for row in rows(run_dir, "passes") if row["client"] == "final-1"]
    assert (final_pass["to_offset"], final_pass["complete"]) == (9, False)


def test_without_journals_and_nodes_the_evidence_stays(run_dir):
    collect(run_dir)
    shutil.rmtree(run_dir / "journal")
    shutil.rmtree(run_dir / "nodes")
    assert "neither journal/ nor nodes/" in collect(run_dir).problems[0]
    assert len(rows(run_dir, "sends")) == 4


def test_groups(run_dir):
    collect(run_dir)
    commits = rows(run_dir, "commits")
    assert [(row["offset"], row["outcome"]) for row in commits] == [(2, "ok"), (3, "info")]
    assert commits[0]["group"] == "g"
    assert rows(run_dir, "commit_reads")[0]["offset"] is None
    assert rows(run_dir, "assignments")[0]["event"] == "assigned"


def test_damage_is_reported_and_loses_nothing_else(run_dir):
    collected = collect(run_dir)
    all_problems = "\n".join(collected.problems)
    assert "journal/g1.jsonl: the journal has no proper end" in all_problems
    assert "nodes/b1/data/orders-0" in all_problems
    assert "faults.jsonl: an entry is damaged" in all_problems
    manifest = {row["file"]: row for row in rows(run_dir, "manifest")}
    assert manifest["journal/p1.jsonl"]["ended_properly"]
    assert manifest["journal/p1.jsonl"]["last_sequence"] == 3
    assert not manifest["journal/g1.jsonl"]["ended_properly"]
    assert manifest["evidence/sends"]["rows"] == 4
    assert len(rows(run_dir, "replicas")) == 2
    assert rows(run_dir, "faults")[0]["targets"] == '["b1"]'


def test_collecting_again_replaces(run_dir):
    first = collect(run_dir)
    assert collect(run_dir).rows == first.rows
    assert len(rows(run_dir, "sends")) == 4


def test_parts_written_during_the_run_are_kept_and_counted(run_dir):
    looks = [{"at_ns": at_ns, "source": "lab", "metric": "m", "value": 1.0} for at_ns in range(3)]
    with Evidence(run_dir, "lab", "r1") as evidence:
        for look in looks:
            evidence.add("samples", look)
    view = View(5, 1, "orders", 0, 1, 0)
    journal(run_dir, "probe1", [begin("probe1", "probe"), view])
    for _ in range(2):
        collect(run_dir)
        counted = {row["file"]: row["rows"] for row in rows(run_dir, "manifest")}
        assert counted["evidence/samples"] == len(rows(run_dir, "samples")) > len(looks)
        assert counted["evidence/samples/lab.parquet"] == len(looks)


def test_parts_are_complete_or_absent(tmp_path):
    def crash():
        with Evidence(tmp_path, "p1", "r1") as evidence:
            for op in range(ROW_GROUP + 1):
                evidence.add("sends", {"op": op})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        crash()
    assert not list((tmp_path / "evidence").rglob("*.p*"))
    with Evidence(tmp_path, "p1", "r1") as evidence:
        for op in range(ROW_GROUP * 2 + 1):
            evidence.add("sends", {"op": op})
    assert [row["op"] for row in rows(tmp_path, "sends")] == list(range(ROW_GROUP * 2 + 1))


def test_acts_become_rows(run_dir):
    with (
        pytest.raises(ActFailed, match="no such topic"),
        ActLog(run_dir).act("delete", "nothing"),
    ):
        raise ActFailed("no such topic")
    collect(run_dir)
    changed, refused = rows(run_dir, "admin_ops")
    assert (changed["act"], changed["subject"], changed["outcome"]) == ("config", "orders", "ok")
    assert json.loads(changed["before"]) == {"retention.ms": None}
    assert json.loads(changed["after"]) == {"retention.ms": "2000"}
    assert changed["invoke_ns"] <= changed["complete_ns"]
    assert refused["outcome"] == "info"
    assert "no such topic" in refused["after"]
    with (run_dir / "admin_ops.jsonl").open("a") as file:
        file.write("{cut")
    assert "admin_ops.jsonl: an entry is damaged" in collect(run_dir).problems


def test_a_client_that_the_lab_killed_is_no_damage(run_dir):
    act = {"invoke_ns": 1, "complete_ns": 2, "outcome": "ok", "act": "kill client", "subject": "g1"}
    (run_dir / "clients.jsonl").write_text(json.dumps(act) + "\n")
    collected = collect(run_dir)
    assert not any("g1" in problem for problem in collected.problems)
    assert "g1" in {row["subject"] for row in rows(run_dir, "admin_ops")}
    manifest = {row["file"]: row for row in rows(run_dir, "manifest")}
    assert not manifest["journal/g1.jsonl"]["ended_properly"]
    with (run_dir / "clients.jsonl").open("a") as file:
        file.write("{cut")
    assert [p for p in collect(run_dir).problems if "clients.jsonl" in p or "g1" in p] == [
        "clients.jsonl: an entry is damaged"
    ]
