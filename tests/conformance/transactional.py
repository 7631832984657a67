"""Transactional producers and readers of librdkafka, for topics of three partitions."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance.side import Side
from tests.waiting import until
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import ListTransactionsRequest
from urteil.harness.cluster import Cluster

PARTITIONS = 3
WAIT_S = 30
UNDER_WAY = ListTransactionsRequest(state_filters=["PrepareCommit", "PrepareAbort"])


def producer(cluster: Cluster, name: str, **more: Any) -> Producer:
    settings = {"bootstrap.servers": ",".join(cluster.bootstrap), "transactional.id": name}
    producer = Producer({**settings, "log_level": 0, **more})
    producer.init_transactions(WAIT_S)
    return producer


def send(producer: Producer, topic: str, values: list[str]) -> None:
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


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


def settle(cluster: Cluster) -> None:
    """Until no markers are on their way: an end is answered before they are written."""
    side = Side("any", cluster.bootstrap)

    def is_settled(to: int) -> bool:
        answer = side.get(UNDER_WAY, 0, to=to)
        return bool(answer.error_code == ErrorCode.NONE and not answer.transaction_states)

    side.until_everywhere(is_settled)
    side.close()


def read(cluster: Cluster, topic: str, isolation: str) -> list[str]:
    """All that a reader sees, up to the ends that the leaders name; what is committed or aborted
    is so in every log by then."""
    settle(cluster)
    consumer = reader(cluster, **{"isolation.level": isolation, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    values, ends = [], set()

    def is_at_the_ends() -> bool:
        for message in consumer.consume(500, 0.2):
            if message.error():
                ends.add(message.partition())
            else:
                values.append(message.value().decode())
        return len(ends) == PARTITIONS

    until(is_at_the_ends, lambda: (values, ends), deadline_s=WAIT_S)
    consumer.close()
    return sorted(values)
