"""Kafka's own verifiable clients on a real cluster: what is noted for them is what happened."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from tests.waiting import until
from urteil.harness.clients.libraries.verifiable_tool import check_faults
from urteil.harness.clients.transactions.open_transactions import read_end_offsets
from urteil.harness.clients.workload import Workload
from urteil.harness.cluster import Cluster
from urteil.harness.evidence.collection import collect
from urteil.harness.evidence.journal import JournalReader, Poll
from urteil.harness.run.topics import create_topics, fit_topics
from urteil.harness.scenario import (
    ClusterSpec,
    FaultSpec,
    RunFacts,
    Scenario,
    TopicFact,
    TopicSpec,
    WorkloadSpec,
    save,
)
from urteil.harness.targets import parse_target

SCENARIO = Scenario(
    name="verifiable",
    cluster=ClusterSpec(brokers=1),
    workload=WorkloadSpec(
        kind="group",
        client="verifiable",
        topics=(TopicSpec(partitions=3, replication_factor=1),),
        producers=1,
        consumers=1,
        rate_records_per_s=100.0,
    ),
)


UNREAD = 100
"""Records that the tool sends while its client is stopped: more than the client noted ahead."""


def _stall(cluster: Cluster, workload: Workload) -> None:
    slots = [("urteil", partition) for partition in range(3)]
    pid = workload.controls().status("p1").pid
    assert pid is not None
    before = sum(read_end_offsets(cluster.bootstrap, slots).values())
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: sum(read_end_offsets(cluster.bootstrap, slots).values()) > before + UNREAD)
    finally:
        os.kill(pid, signal.SIGCONT)


def read(run_dir: Path) -> int:
    """Records that the member has read so far."""
    polls = [
        poll for poll in JournalReader(run_dir / "journal" / "g1.jsonl") if isinstance(poll, Poll)
    ]
    return sum(len(part.records) for poll in polls for part in poll.slices)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which the client is stopped for a while and the tool continues to send."""
    run_dir = tmp_path_factory.mktemp("run")
    with Cluster(SCENARIO.cluster, parse_target("urteil"), run_dir) as cluster:
        create_topics(cluster.bootstrap, fit_topics(SCENARIO))
        topic_id = cluster.state.topic_id("urteil") or ""
        topic = TopicFact(name="urteil", topic_id=topic_id, partitions=3, replication_factor=1)
        workload = Workload(SCENARIO, run_dir, cluster.bootstrap, [topic], "r1")
        try:
            workload.start()
            until(lambda: workload.acknowledged_count() > 50, deadline_s=60)
            _stall(cluster, workload)
            until(lambda: workload.acknowledged_count() > 250, deadline_s=60)
            workload.stop_producers()
            until(lambda: read(run_dir) >= workload.acknowledged_count(), deadline_s=60)
            workload.stop_consumers()
            assert workload.problems() == []
        finally:
            workload.stop()
    facts = RunFacts(run="r1", seed=1, scenario="verifiable", target="urteil", runtime="process",
                     boot_id="", command="", topics=[topic])  # fmt: skip
    save(run_dir / "run.json", facts)
    collect(run_dir)
    return run_dir


def rows(run_dir: Path, table: str, client: str = "") -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = pq.read_table(run_dir / "evidence" / table).to_pylist()
    return [row for row in result if not client or row["client"] == client]


@pytest.mark.thorough
def test_acknowledged_records_have_the_reported_offsets(run_dir: Path) -> None:
    disk = {row["value_id"]: row for row in rows(run_dir, "replicas") if row["value_id"]}
    sends = {row["value_id"]: row for row in rows(run_dir, "sends")}
    assert disk.keys() <= sends.keys()
    assert {row["outcome"] for row in sends.values()} <= {"ok", "fail", "info"}
    for value_id, send in sends.items():
        if send["outcome"] == "ok":
            place = (disk[value_id]["partition"], disk[value_id]["offset"])
            assert place == (send["partition_intended"], send["offset"])
            assert disk[value_id]["key"] == send["key"]
        elif send["outcome"] == "fail":
            assert value_id not in disk


def test_record_time_is_not_before_the_invocation(run_dir: Path) -> None:
    """Java's producer sets the timestamp when it sends: the real time, which the tool does not
    report."""
    sends = {row["value_id"]: row for row in rows(run_dir, "sends")}
    wall_ns = time.time_ns() - time.monotonic_ns()
    early_s = [
        row["timestamp_ms"] / 1e3 - (sends[row["value_id"]]["invoke_ns"] + wall_ns) / 1e9
        for row in rows(run_dir, "replicas")
        if row["value_id"]
    ]
    assert len(early_s) > 250
    assert min(early_s) > 0


def test_member_reads_and_commits_all_records(run_dir: Path) -> None:
    disk = {row["value_id"] for row in rows(run_dir, "replicas") if row["value_id"]}
    assert {row["value_id"] for row in rows(run_dir, "reads", "g1")} == disk
    commits = rows(run_dir, "commits", "g1")
    assert {row["outcome"] for row in commits} == {"ok"}
    logs = [row for row in rows(run_dir, "logs") if row["topic"] == "urteil"]
    ends = {row["partition"]: row["log_end"] for row in logs}
    reached: dict[int, int] = {}
    for row in commits:
        reached[row["partition"]] = max(row["offset"], reached.get(row["partition"], 0))
    assert reached == {partition: end for partition, end in ends.items() if end}


def test_unsupported_faults_are_rejected() -> None:
    request = msgspec.structs.replace(SCENARIO, faults=(FaultSpec(fault="add_partitions"),))
    with pytest.raises(ValueError, match="verifiable has add_partitions: more partitions move"):
        check_faults(request)
    check_faults(SCENARIO)
