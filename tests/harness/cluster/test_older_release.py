"""The oldest release of Apache Kafka as a target: its start, its capabilities and its logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from kafka import KafkaProducer

from urteil.chaos.capabilities import CAPABILITIES
from urteil.cli.run import run
from urteil.harness.cluster import Cluster
from urteil.harness.evidence.readers.replica_logs import find_logs, read_log
from urteil.harness.evidence.readers.zookeeper_log import LogFiles, StateRows, read_changes
from urteil.harness.run.topics import create_topics
from urteil.harness.scenario import ClusterSpec, TopicSpec
from urteil.harness.targets import KafkaTarget

pytestmark = pytest.mark.thorough
TOPIC = "old"
ARABIC = "-Duser.language=ar -Duser.country=EG"
"""A locale whose digits are not ASCII digits."""


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cluster, str]:
    """A cluster with three records, stopped again, and the topic's id. Its folder has a blank, and
    the environment another locale."""
    folder = tmp_path_factory.mktemp("old release")
    cluster = Cluster(ClusterSpec(brokers=1), KafkaTarget(version="0.10.2.2"), folder)
    with pytest.MonkeyPatch.context() as changed:
        changed.setenv("JAVA_TOOL_OPTIONS", ARABIC)
        with cluster:
            assert cluster.missing_capabilities() == list(CAPABILITIES)
            create_topics(cluster.bootstrap, [TopicSpec(name=TOPIC, replication_factor=1,
                                                        partitions=1)])  # fmt: skip
            topic_id = cluster.state.topic_id(TOPIC)
            assert topic_id is not None
            producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, enable_idempotence=False)
            for number in range(3):
                producer.send(TOPIC, b"%d" % number)
            producer.close()
    return cluster, topic_id


def test_logs_are_read_in_message_format_1(stopped: tuple[Cluster, str]) -> None:
    cluster, topic_id = stopped
    made = {TOPIC: topic_id}
    (log,) = find_logs(1, cluster.node_dir("b1") / "data", {}, (), made, are_made=True)
    rows = list(read_log(log, "run"))
    assert [row["offset"] for row in rows] == [0, 1, 2]
    assert (log.damage, log.topic_id) == ([], topic_id)
    assert {path.name for path in log.folder.glob("*.log")} == {f"{0:020}.log"}


def test_states_name_the_topic_by_the_same_id(stopped: tuple[Cluster, str]) -> None:
    cluster, topic_id = stopped
    states, files = StateRows(0, has_topic_ids=False), LogFiles()
    changes = read_changes(cluster.node_dir("zk1") / "data", files)
    rows = [row for change in changes for row in states.rows(change)]
    assert states.topic_ids == {TOPIC: topic_id}
    assert {row["topic_id"] for row in rows if row.get("partition") == 0} == {topic_id}


def test_tombstones_are_refused_before_the_start(tmp_path: Path) -> None:
    arguments = ["compaction", "--target", "kafka:0.10.2.2", "--out", str(tmp_path)]
    answer = CliRunner().invoke(run, arguments)
    assert answer.exit_code == 2, answer.output
    assert "Apache Kafka 0.10.2.2 lacks record batches (Produce 3, since 0.11.0)" in answer.output
    assert not [path for path in tmp_path.iterdir() if path.is_dir() and not path.is_symlink()]
