"""A whole cluster of Apache Kafka: start behind proxies, faults, healing, stop."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from tests.subscribed import subscribed
from tests.waiting import until
from urteil.chaos.observations import Link, NodeState, NotHealthy
from urteil.harness.cluster import Cluster
from urteil.harness.dependencies.kafka import kafka_tool
from urteil.harness.reaper import holders, start_reaper
from urteil.harness.scenario import ClusterSpec
from urteil.harness.targets import KafkaTarget

TOPIC, RECORDS = "orders", 50

pytestmark = pytest.mark.thorough
"""The default tests check the same on our broker, and tests/conformance starts clusters of Apache
Kafka."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("kafka")
    config = {"log.segment.bytes": "1048576", "zookeeper.session.timeout.ms": "8000"}
    spec = ClusterSpec(brokers=3, config=config)
    with Cluster(spec, KafkaTarget(), folder) as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        admin.create_topics({TOPIC: {"num_partitions": 3, "replication_factor": 3}})
        admin.close()
        cluster.await_healthy(deadline_s=30)
        yield cluster
        nodes = [*cluster.plan.brokers, *cluster.plan.zookeepers]
        own = [cluster.runtime.status(node).pid for node in nodes]
    assert not set(own) & set(holders(start_reaper()))


def produce(cluster: Cluster) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all")
    futures = [
        producer.send(TOPIC, b"%d" % number, partition=number % 3) for number in range(RECORDS)
    ]
    assert all(future.get(timeout=30).offset >= 0 for future in futures)
    producer.close()


def test_clients_write_and_read_through_their_proxies(cluster: Cluster) -> None:
    produce(cluster)
    consumer = subscribed(TOPIC, cluster.bootstrap, auto_offset_reset="earliest")
    values: list[bytes] = []

    def are_read() -> bool:
        values.extend(record.value for batch in consumer.poll(500).values() for record in batch)
        return len(values) >= RECORDS

    until(are_read)
    consumer.close()
    assert sorted(values, key=int) == [b"%d" % number for number in range(RECORDS)]


def test_controls_report_the_state_and_properties_of_the_cluster(cluster: Cluster) -> None:
    controls = cluster.controls()
    views = controls.partitions(TOPIC)
    assert [view.partition for view in views] == [0, 1, 2]
    assert {node for view in views for node in view.isr} == {"b1", "b2", "b3"}
    assert controls.controller() in controls.brokers
    assert controls.partitions("nothing") == []
    text = (cluster.node_dir("b2") / "server.properties").read_text()
    assert "log.segment.bytes=1048576\n" in text
    assert cluster.versions()["kafka"] == "3.9.1"


def test_one_way_partition_removes_a_follower_from_the_isr(cluster: Cluster) -> None:
    controls = cluster.controls()
    before = controls.partitions(TOPIC)[0]
    assert before.leader is not None
    follower = next(node for node in before.replicas if node != before.leader)
    link = Link(follower, before.leader)
    controls.net.cut([link])
    assert not controls.net.probe(link, timeout_s=0.5).answered
    assert controls.net.probe(Link(before.leader, follower)).answered

    def is_out_of_sync() -> bool:
        produce(cluster)
        return follower not in controls.partitions(TOPIC)[0].isr

    until(is_out_of_sync)
    controls.net.heal_all()
    controls.await_healthy(deadline_s=30)
    assert follower in controls.partitions(TOPIC)[0].isr


def test_killed_leader_is_replaced_and_restarts(cluster: Cluster) -> None:
    controls = cluster.controls()
    leader = controls.partitions(TOPIC)[1].leader
    assert leader is not None
    assert controls.kill(leader).state is NodeState.DEAD
    with pytest.raises(NotHealthy, match=f"{leader} is dead"):
        controls.await_healthy(deadline_s=0.2)
    assert controls.start(leader).state is NodeState.RUNNING
    controls.await_healthy(deadline_s=30)
    assert controls.partitions(TOPIC)[1].leader_epoch > 0
    produce(cluster)
    controls.check()


def test_tools_of_apache_kafka_list_the_topics(cluster: Cluster) -> None:
    args = ["--bootstrap-server", ",".join(cluster.bootstrap), "--list"]
    argv = kafka_tool("org.apache.kafka.tools.TopicCommand", args)
    process = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert TOPIC in process.stdout.split(), process.stderr


def test_logs_and_data_are_in_the_folder_of_the_run(cluster: Cluster) -> None:
    assert "[KafkaServer id=1] started" in cluster.log_tail("b1", 2000)
    assert list(cluster.data_dirs()) == [1, 2, 3]
    assert list(Path(cluster.data_dirs()[1]).glob(f"{TOPIC}-*/*.log"))


def await_log_line(cluster: Cluster, node: str, text: str) -> None:
    until(lambda: text in cluster.runtime.log(node), f"{node} logs {text}")


def test_broker_whose_session_expired_at_start_is_restarted_once(
    tmp_path: Path,
) -> None:
    cluster = Cluster(ClusterSpec(brokers=1), KafkaTarget(), tmp_path)
    with ThreadPoolExecutor(max_workers=1) as pool, closing(cluster):
        started = pool.submit(cluster.start)
        await_log_line(cluster, "b1", "Connected.")
        cluster.runtime.pause("b1")
        await_log_line(cluster, "zk1", "Expiring session")
        cluster.runtime.resume("b1")
        started.result(timeout=60)
        assert cluster.runtime.status("b1").starts == 2
        assert cluster.controls().registered_brokers() == ["b1"]
