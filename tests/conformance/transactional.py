"""Transactional producers and readers of librdkafka, for topics of three partitions."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from urteil.harness.cluster import Cluster

PARTITIONS = 3
WAIT_S = 30


def producer(cluster: Cluster, name: str, **more: Any) -> Producer:
    settings = {"bootstrap.servers": ",".join(cluster.bootstrap), "transactional.id": name}
    one = Producer({**settings, "log_level": 0, **more})
    one.init_transactions(WAIT_S)
    return one


def send(one: Producer, topic: str, values: list[str]) -> None:
    for number, value in enumerate(values):
        one.produce(topic, value, partition=number % PARTITIONS)
    assert one.flush(WAIT_S) == 0


def reader(cluster: Cluster, **more: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": ",".join(cluster.bootstrap),
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            **more,
        }
    )


def read(cluster: Cluster, topic: str, isolation: str) -> list[str]:
    """All that a reader sees, up to the ends that the leaders name."""
    consumer = reader(cluster, **{"isolation.level": isolation, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    seen, ends, deadline = [], set(), time.monotonic() + WAIT_S
    while len(ends) < PARTITIONS:
        assert time.monotonic() < deadline, (seen, ends)
        for message in consumer.consume(500, 0.2):
            if message.error():
                ends.add(message.partition())
            else:
                seen.append(message.value().decode())
    consumer.close()
    return sorted(seen)
