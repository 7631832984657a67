"""Brokers with two log directories each, under Apache Kafka's tools, and a directory that fails."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker.nodes import Nodes
from tests.broker.traffic import Traffic, read_all
from tests.broker.zookeeper.server import ZooKeeperServer
from tests.conformance.side import Side
from tests.waiting import until
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import DescribeLogDirsRequest, MetadataRequest
from urteil.harness.dependencies.kafka import kafka_tool

PARTITIONS = 4
FAST = {
    "default_replication_factor": "3",
    "num_partitions": str(PARTITIONS),
    "min_insync_replicas": "2",
    "replica_high_watermark_checkpoint_interval_ms": "200",
    "offsets_topic_num_partitions": "1",
}


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("nodes")
    with Nodes(folder, zookeeper, "/log-dirs", 3, dirs=2, **FAST) as started:
        yield started


def tool(nodes: Nodes, main_class: str, *args: str) -> str:
    command = kafka_tool(main_class, ["--bootstrap-server", nodes.bootstrap[0], *args])
    run = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def described(nodes: Nodes, topic: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return (partition, directory) of every replica, as LogDirsCommand prints it."""
    out = tool(nodes, "org.apache.kafka.tools.LogDirsCommand", "--describe", "--topic-list", topic)
    (line,) = [each for each in out.splitlines() if each.startswith("{")]
    return {
        (replica["partition"], directory["logDir"]): replica
        for broker in json.loads(line)["brokers"]
        for directory in broker["logDirs"]
        if directory["error"] is None
        for replica in directory["partitions"]
    }


def where(nodes: Nodes, broker: int, name: str) -> Path:
    """Return the log directory of a broker that holds the folder."""
    (path,) = [path for path in nodes.dirs(broker) if (path / name).exists()]
    return path


@pytest.mark.thorough
@pytest.mark.timeout(200)
def test_kafkas_tools_describe_move_and_delete(nodes: Nodes, tmp_path: Path) -> None:
    with Traffic(nodes.bootstrap, ["orders"]) as traffic:
        traffic.await_more(200)
        before = where(nodes, 1, "orders-0")
        target = next(path for path in nodes.dirs(1) if path != before)
        replicas = sorted(nodes.state("orders", 0)["isr"])
        moves = tmp_path / "moves.json"
        partition = {
            "topic": "orders",
            "partition": 0,
            "replicas": replicas,
            "log_dirs": [str(target) if replica == 1 else "any" for replica in replicas],
        }
        moves.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        reassign = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
        args = ["--reassignment-json-file", str(moves)]
        throttle = ["--replica-alter-log-dirs-throttle", "50000000"]
        out = tool(nodes, reassign, *args, "--execute", *throttle)
        assert "for replica orders-0 with broker 1" in out
        until(lambda: (target / "orders-0").exists(), "the replica moved")
        traffic.await_more(200)
    out = tool(nodes, reassign, *args, "--verify")
    assert re.search(r"Reassignment of replica orders-0-1 completed successfully", out), out
    directories = described(nodes, "orders")
    lies = {(f"orders-{index}", str(where(nodes, broker, f"orders-{index}")))
            for index in range(PARTITIONS) for broker in (1, 2, 3)}  # fmt: skip
    assert set(directories) == lies
    assert ("orders-0", str(target)) in lies
    assert all(row["size"] > 0 and not row["isFuture"] for row in directories.values())
    assert {row["offsetLag"] for row in directories.values()} == {0}
    file = tmp_path / "delete.json"
    rows = [{"topic": "orders", "partition": index, "offset": -1} for index in range(PARTITIONS)]
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    delete = "org.apache.kafka.tools.DeleteRecordsCommand"
    out = tool(nodes, delete, "--offset-json-file", str(file))
    low = dict(re.findall(r"partition: (orders-\d)\s+low_watermark: (\d+)", out))
    assert len(low) == PARTITIONS, out
    shell = "org.apache.kafka.tools.GetOffsetShell"
    out = tool(nodes, shell, "--topic", "orders", "--time", "earliest")
    assert dict(re.findall(r"orders:(\d):(\d+)", out)) == {
        name.removeprefix("orders-"): offset for name, offset in low.items()
    }


@pytest.mark.timeout(300)
def test_failed_directory_leaves_others_online(nodes: Nodes) -> None:
    """Apache Kafka's own test also replaces the directory by a file."""
    with Traffic(nodes.bootstrap, ["broken"]) as traffic:
        traffic.await_more(200)
        broker = nodes.state("broken", 0)["leader"]
        broken = where(nodes, broker, "broken-0")
        lost = [index for index in range(PARTITIONS) if (broken / f"broken-{index}").exists()]
        kept = [index for index in range(PARTITIONS) if index not in lost]
        assert kept
        broken.rename(broken.with_name("away"))
        broken.write_bytes(b"")

        def moved() -> bool:
            states = [nodes.state("broken", index) for index in lost]
            return all(state["leader"] != broker and broker not in state["isr"] for state in states)

        until(moved, "its partitions are led elsewhere")
        traffic.await_more(300)
        assert nodes.processes[broker].poll() is None
        until(
            lambda: all(broker in nodes.state("broken", index)["isr"] for index in kept),
            "it keeps the others",
        )
        until(
            lambda: nodes.zk.get_children("/log_dir_event_notification") == [],
            "the controller read it",
        )
        assert f"{broken} is offline" in nodes.log(broker).read_text()
        expected = (
            {str(path): _code(path == broken) for path in nodes.dirs(broker)},
            {index: [broker] if index in lost else [] for index in range(PARTITIONS)},
        )
        until(lambda: describe_failures(nodes, broker) == expected, "the failure is reported")
        nodes.kill(broker)
        broken.unlink()
        broken.with_name("away").rename(broken)
        nodes.start(broker)
        until(
            lambda: all(nodes.isr_size("broken", index) == 3 for index in range(PARTITIONS)),
            "ISR full again",
        )
    records = read_all(nodes.bootstrap, ["broken"], PARTITIONS)
    assert {v: w for v, w in traffic.acknowledged.items() if records.get(v) != [w]} == {}


def _code(is_broken: bool) -> ErrorCode:
    return ErrorCode.KAFKA_STORAGE_ERROR if is_broken else ErrorCode.NONE


def describe_failures(nodes: Nodes, broker: int) -> tuple[dict[str, int], dict[int, list[int]]]:
    """Return the error of each directory and the offline replicas of each partition."""
    side = Side("ours", nodes.bootstrap)
    dirs = side.get(DescribeLogDirsRequest(topics=None), 4, to=broker).results
    (topic,) = side.get(
        MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="broken")]), 7
    ).topics
    side.close()
    return (
        {directory.log_dir: directory.error_code for directory in dirs},
        {
            partition.partition_index: list(partition.offline_replicas)
            for partition in topic.partitions
        },
    )
