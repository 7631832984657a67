"""Every keyword of the marker, on a test and on a module."""

import pytest
from kafka import KafkaProducer
from kafka.errors import MessageSizeTooLargeError

pytestmark = pytest.mark.urteil(brokers=1, zookeepers=1, runtime="process", seed=7)


@pytest.mark.urteil(
    target="urteil",
    config={"message.max.bytes": 2000, "auto.create.topics.enable": False},
    topics=["orders"],
)
def test_settings_and_topics(urteil_cluster, urteil_lab):
    assert len(urteil_cluster.bootstrap_servers) == 1
    assert urteil_cluster.topic("orders").partitions == 3
    assert urteil_lab.options.seed == 7
    producer = KafkaProducer(bootstrap_servers=urteil_cluster.bootstrap, acks="all")
    with pytest.raises(MessageSizeTooLargeError):
        producer.send("orders", b"x" * 3000).get(timeout=60)
    producer.close()


@pytest.mark.urteil(topics={"kept": {"partitions": 1, "config": {"retention.ms": 1000000}}})
def test_failure(urteil_cluster):
    producer = KafkaProducer(bootstrap_servers=urteil_cluster.bootstrap, acks="all")
    producer.send("kept", b"a record of the failed test").get(timeout=60)
    producer.close()
    assert urteil_cluster.topic("kept").partitions == 2
