"""Kafka's own administration tools, of 3.9.1 and of 2.8.0, at a cluster of ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.kafka_tools import old_tool, tool
from tests.conformance.side import Side
from tests.conformance.test_partitions import alter, list_reassignments, partitions, replicas_are
from urteil.broker.wire.primitives import ZERO_UUID

TOPICS = "org.apache.kafka.tools.TopicCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT = "org.apache.kafka.tools.LeaderElectionCommand"
OLD_TOPICS = "kafka.admin.TopicCommand"
OLD_REASSIGN = "kafka.admin.ReassignPartitionsCommand"


@pytest.fixture(scope="module")
def ours(pair: Pair) -> Side:
    return pair.ours


@pytest.fixture
def topic(pair: Pair) -> str:
    return pair.name("tool")


def plan(folder: Path, topic: str, *replicas: Sequence[int]) -> str:
    """A file for `--reassignment-json-file`."""
    asked = [
        {"topic": topic, "partition": partition, "replicas": list(ids)}
        for partition, ids in enumerate(replicas)
    ]
    path = folder / "reassignment.json"
    path.write_text(json.dumps({"version": 1, "partitions": asked}))
    return str(path)


def known(side: Side, topic: str) -> Any:
    """The topic's partitions in Metadata; empty without such a topic."""
    return partitions(side, topic)["partitions"]


@pytest.mark.thorough
def test_topic_tool_creates_describes_and_deletes_topics(ours: Side, topic: str) -> None:
    def topics(*args: str) -> str:
        return tool(TOPICS, ours.bootstrap, "--topic", topic, *args)

    said = topics("--create", "--partitions", "2", "--replication-factor", "3")
    assert f"Created topic {topic}." in said
    topics("--alter", "--partitions", "4")
    described = topics("--describe")
    assert "PartitionCount: 4\tReplicationFactor: 3" in described
    assert described.count("Leader: ") == 4
    topics("--delete")
    ours.until(lambda: known(ours, topic) == [])


@pytest.mark.thorough
def test_verification_of_a_reassignment_removes_its_throttle(
    ours: Side, topic: str, tmp_path: Path
) -> None:
    """Proposed, begun, verified; the throttle goes with the verification."""
    ours.create(topic, [(1, 2), (2, 1)])

    def reassign(*args: str) -> str:
        return tool(REASSIGN, ours.bootstrap, *args)

    plan_file = tmp_path / "topics.json"
    plan_file.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    proposed = reassign(
        "--generate", "--topics-to-move-json-file", str(plan_file), "--broker-list", "2,3"
    )
    assert "Proposed partition reassignment configuration" in proposed
    (line,) = (line for line in proposed.splitlines()[-3:] if line.startswith("{"))
    assert {id for row in json.loads(line)["partitions"] for id in row["replicas"]} == {2, 3}
    file = plan(tmp_path, topic, (3, 1), (1, 3))
    begun = reassign("--execute", "--reassignment-json-file", file, "--throttle", "10000000")
    assert "Successfully started partition reassignments" in begun
    ours.until(lambda: replicas_are(ours, topic, (3, 1), (1, 3)))
    verified = reassign("--verify", "--reassignment-json-file", file)
    assert verified.count("is completed.") == 2
    assert "Clearing topic-level throttles" in verified


@pytest.mark.thorough
def test_reassignment_to_a_missing_broker_is_cancelled(
    pair: Pair, topic: str, tmp_path: Path
) -> None:
    """Broker 9 is nowhere: only the node of old tools takes it for a target."""
    ours = pair.ours
    ours.create(topic, [(1, 2)])
    with ours.znodes() as zk:
        asked = {"topic": topic, "partition": 0, "replicas": [2, 9]}
        data = json.dumps({"version": 1, "partitions": [asked]})
        zk.create("/admin/reassign_partitions", data.encode())
        ours.until(lambda: list_reassignments(ours, {topic: [0]})["topics"] != [])
        file = plan(tmp_path, topic, (2, 9))
        # the throttles of broker 9 could not be cleared
        cancel = ("--cancel", "--preserve-throttles", "--reassignment-json-file", file)
        done = tool(REASSIGN, ours.bootstrap, *cancel)
        assert f"Successfully cancelled partition reassignment for: {topic}-0" in done
        assert zk.exists("/admin/reassign_partitions") is None
    ours.until(lambda: replicas_are(ours, topic, (2, 1)))


@pytest.mark.thorough
def test_election_tool_elects_leaders(ours: Side, topic: str) -> None:
    ours.create(topic, [(1, 2)])
    alter(ours, {(topic, 0): (2, 1)})
    ours.until(lambda: replicas_are(ours, topic, (2, 1)))
    options = ("--topic", topic, "--partition", "0")
    done = tool(ELECT, ours.bootstrap, "--election-type", "preferred", *options)
    assert f"Successfully completed leader election (PREFERRED) for partitions {topic}-0" in done
    assert known(ours, topic)[0]["leader_id"] == 2
    needless = tool(ELECT, ours.bootstrap, "--election-type", "unclean", *options)
    assert f"Valid replica already elected for partitions {topic}-0" in needless


@pytest.mark.thorough
def test_topic_written_to_zookeeper_gets_an_id(ours: Side, topic: str) -> None:
    """Written into ZooKeeper without an id, which the controller adds."""

    def topics(*args: str) -> str:
        return old_tool(OLD_TOPICS, ours.zookeeper, "--topic", topic, *args)

    topics("--create", "--partitions", "2", "--replication-factor", "2")
    ours.until(lambda: len(known(ours, topic)) == 2)
    made = partitions(ours, topic)
    assert made["topic_id"] != ZERO_UUID
    topics("--alter", "--partitions", "3")
    ours.until(lambda: len(known(ours, topic)) == 3)
    described = topics("--describe")
    assert "PartitionCount: 3" in described
    assert described.count("Isr: ") == 3
    assert topic in topics("--list")
    topics("--delete")
    ours.until(lambda: known(ours, topic) == [])


def test_reassignment_written_to_zookeeper_completes(
    ours: Side, topic: str, tmp_path: Path
) -> None:
    ours.create(topic, [(1,)])
    file = plan(tmp_path, topic, (2, 3))
    old_tool(OLD_REASSIGN, ours.zookeeper, "--execute", "--reassignment-json-file", file)
    ours.until(lambda: replicas_are(ours, topic, (2, 3)))
    with ours.znodes() as zk:  # brokers hear of the end before the wish is taken out
        ours.until(lambda: zk.exists("/admin/reassign_partitions") is None)
        alter(ours, {(topic, 0): (3, 2)})
        ours.until(lambda: replicas_are(ours, topic, (3, 2)))
        assert known(ours, topic)[0]["leader_id"] == 2
        # what PreferredReplicaLeaderElectionCommand wrote up to 2.3
        asked = {"version": 1, "partitions": [{"topic": topic, "partition": 0}]}
        zk.create("/admin/preferred_replica_election", json.dumps(asked).encode())
        ours.until(lambda: known(ours, topic)[0]["leader_id"] == 3)
        ours.until(lambda: zk.exists("/admin/preferred_replica_election") is None)
