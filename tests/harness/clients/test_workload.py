"""Journals of real clients agree with the replica logs of a real cluster."""

import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.waiting import until
from urteil.harness.clients.leadership_rotation import leadership_rounds
from urteil.harness.clients.processes import spawn_process
from urteil.harness.clients.workload import Workload
from urteil.harness.cluster import Cluster
from urteil.harness.evidence.collection import collect
from urteil.harness.run.topics import create_topics, fit_topics
from urteil.harness.scenario import (
    RunFacts,
    Scenario,
    TopicFact,
    TopicSpec,
    WorkloadSpec,
    save,
)
from urteil.harness.targets import parse_target

SCENARIO = Scenario(
    name="test",
    workload=WorkloadSpec(
        topics=(TopicSpec(partitions=2, config={"min.insync.replicas": "2"}),),
        rate_records_per_s=150.0,
        delivery_timeout_ms=2_000,
        request_timeout_ms=1_000,
    ),
)


def rows(run_dir: Path, table: str):
    return pq.read_table(run_dir / "evidence" / table).to_pylist()


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run in which two followers die and restart, and one producer is killed."""
    run_dir = tmp_path_factory.mktemp("run")
    spawned = {}

    def spawn(argv, log):
        spawned[log.stem] = spawn_process(argv, log)
        return spawned[log.stem]

    with Cluster(SCENARIO.cluster, parse_target("urteil"), run_dir) as cluster:
        create_topics(cluster.bootstrap, fit_topics(SCENARIO))
        topic_id = cluster.state.topic_id("urteil") or ""
        topic = TopicFact(name="urteil", topic_id=topic_id, partitions=2, replication_factor=3)
        workload = Workload(SCENARIO, run_dir, cluster.bootstrap, [topic], "r1", spawn=spawn)
        try:
            _play(cluster, workload, spawned)
        finally:
            workload.stop()
    facts = RunFacts(run="r1", seed=1, scenario="test", target="urteil", runtime="process",
                     boot_id="", command="", topics=[topic])  # fmt: skip
    save(run_dir / "run.json", facts)
    collect(run_dir)
    return run_dir


def _play(cluster, workload, spawned):
    controls = cluster.controls()
    workload.start()
    until(lambda: workload.acknowledged_count() > 50)
    spawned["client-p2"].kill()
    leader = controls.partition("urteil", 0).leader
    followers = [node for node in controls.brokers if node != leader]
    for node in followers:
        controls.kill(node)
    until(lambda: workload.progress().failed > 5)
    for node in followers:
        controls.start(node)
    cluster.await_healthy(deadline_s=60)
    healed_ns = time.monotonic_ns()
    until(lambda: workload.acknowledged_since(healed_ns) > 20)
    workload.stop_producers()
    problems: list[str] = []
    rounds = leadership_rounds(
        controls, cluster.bootstrap, ["urteil"], deadline_s=60, report=problems.append
    )
    reads = workload.final_reads(60, rounds)
    workload.stop_consumers()
    assert reads.problems == []
    assert reads.leaders == {("urteil", 0): {1, 2, 3}, ("urteil", 1): {1, 2, 3}}
    assert workload.problems() == ["client p2 ended with exit code -9 (logs/client-p2.log)"]


def test_outcomes_agree_with_the_replica_logs(run_dir):
    disk = {}
    for row in rows(run_dir, "replicas"):
        if row["value_id"] is not None:
            disk.setdefault(row["value_id"], []).append(row)
    sends = {row["value_id"]: row for row in rows(run_dir, "sends")}
    assert disk.keys() <= sends.keys()
    for value_id, send in sends.items():
        result = disk.get(value_id, [])
        if send["outcome"] == "ok":
            assert len(result) == 3, send
            place = {(row["partition"], row["offset"]) for row in result}
            assert place == {(send["partition_intended"], send["offset"])}
            assert {row["sequence"] for row in result} == {send["sequence"]}
            assert {row["key"] for row in result} == {send["key"]}
        elif send["outcome"] == "fail":
            assert not result, send
    outcomes = {send["outcome"] for send in sends.values()}
    assert {"ok", "fail"} <= outcomes


def test_final_passes_agree_with_the_replica_logs(run_dir):
    passes = [row for row in rows(run_dir, "passes") if row["final"]]
    assert all(row["complete"] for row in passes)
    disk = {row["value_id"] for row in rows(run_dir, "replicas") if row["value_id"] is not None}
    for client in {row["client"] for row in passes}:
        read = {row["value_id"] for row in rows(run_dir, "reads") if row["client"] == client}
        assert read == disk


def test_journal_of_a_killed_producer_is_readable(run_dir):
    manifest = {row["file"]: row for row in rows(run_dir, "manifest")}
    assert not manifest["journal/p2.jsonl"]["ended_properly"]
    assert manifest["journal/p1.jsonl"]["ended_properly"]
    sends = [row for row in rows(run_dir, "sends") if row["client"] == "p2"]
    assert [row["op"] for row in sorted(sends, key=lambda row: row["op"])] == list(
        range(len(sends))
    )


def test_states_have_the_leaders(run_dir):
    states = [row for row in rows(run_dir, "states") if row["path"].endswith("/0/state")]
    ours = [row for row in states if row["topic"] == "urteil"]
    epochs = [row["leader_epoch"] for row in ours]
    assert epochs == sorted(epochs)
    assert all(row["topic_id"] and row["isr"] and row["replicas"] for row in ours)
