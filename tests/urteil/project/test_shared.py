"""One cluster for a session, and one for a module."""

import pytest
from kafka import KafkaConsumer, KafkaProducer

pytestmark = pytest.mark.urteil(brokers=2, topics=["of-the-module"])


def test_session_cluster_takes_a_record(urteil_session_cluster):
    producer = KafkaProducer(bootstrap_servers=urteil_session_cluster.bootstrap, acks="all")
    producer.send("shared", b"for the next test").get(timeout=60)
    producer.close()


def test_session_cluster_outlives_the_test_and_a_fault(urteil_session_cluster, urteil_nemesis):
    with urteil_nemesis.fault("pause", "b1"):
        pass
    consumer = KafkaConsumer(
        "shared",
        bootstrap_servers=urteil_session_cluster.bootstrap,
        auto_offset_reset="earliest",
        consumer_timeout_ms=60000,
    )
    assert next(consumer).value == b"for the next test"
    consumer.close()


def test_history_of_a_shared_cluster_is_judged_while_it_stands(
    urteil_session_cluster, urteil_history
):
    with urteil_history.load("shared", rate=200) as load:
        load.await_acked(100, deadline_s=60)
    result = urteil_history.judge()
    statuses = {guarantee.name: guarantee.status for guarantee in result.guarantees}
    assert statuses["lost_write"] == "holds", result.reasons
    assert statuses["replica_divergence"] == "not judged"
    assert urteil_session_cluster.topic("shared").partitions == 2


@pytest.mark.urteil(topics={"of-the-test": {"partitions": 1, "replication_factor": 2}})
def test_module_cluster(urteil_module_cluster, urteil_lab):
    assert len(urteil_module_cluster.bootstrap_servers) == 2
    assert urteil_module_cluster.topic("of-the-module").partitions == 3
    assert urteil_lab.cluster() is urteil_module_cluster
    assert urteil_module_cluster.topic("of-the-test").replication_factor == 2
