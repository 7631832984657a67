"""Produce, consume, group, transaction and administration with confluent-kafka (librdkafka)."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

BOOTSTRAP, PREFIX = sys.argv[1:]
TOPIC, GROUP, TXN = f"{PREFIX}-data", f"{PREFIX}-group", f"{PREFIX}-txn"
COMMON: dict[str, Any] = {"bootstrap.servers": BOOTSTRAP}
WAIT_S = 30.0
EXISTS = KafkaError.TOPIC_ALREADY_EXISTS


def administration() -> dict[str, Any]:
    admin = AdminClient(COMMON)
    new = NewTopic(TOPIC, 3, 3, config={"retention.ms": "3600000"})
    admin.create_topics([new], operation_timeout=WAIT_S)[TOPIC].result(WAIT_S)
    try:
        admin.create_topics([new])[TOPIC].result(WAIT_S)
        again = "created"
    except KafkaException as error:
        again = "exists" if error.args[0].code() == EXISTS else str(error)
    resource = ConfigResource(ConfigResource.Type.TOPIC, TOPIC)
    deadline = time.monotonic() + WAIT_S  # a broker may hear of a topic later than its maker
    config = _config(admin, resource, deadline)
    gone = f"{PREFIX}-gone"
    admin.create_topics([NewTopic(gone, 1, 1)], operation_timeout=WAIT_S)[gone].result(WAIT_S)
    admin.create_partitions([NewPartitions(gone, 2)], operation_timeout=WAIT_S)[gone].result(WAIT_S)
    admin.delete_topics([gone], operation_timeout=WAIT_S)[gone].result(WAIT_S)
    return {
        "retention": config["retention.ms"].value,
        "again": again,
        "brokers": sorted(admin.list_topics(timeout=WAIT_S).brokers),
    }


def _config(admin: AdminClient, resource: ConfigResource, deadline: float) -> Any:
    while True:
        try:
            return admin.describe_configs([resource])[resource].result(WAIT_S)
        except KafkaException:
            if time.monotonic() > deadline:
                raise


def produce() -> dict[str, Any]:
    last: dict[int, int] = {}

    def on_delivery(error: Any, message: Any) -> None:
        assert error is None, error
        last[message.partition()] = max(message.offset(), last.get(message.partition(), -1))

    producer = Producer({**COMMON, "enable.idempotence": True, "compression.type": "lz4"})
    for n in range(90):
        headers = [("n", str(n).encode())]
        value, key = f"value {n}", f"key {n}"
        producer.produce(
            TOPIC, value, key, partition=n % 3, headers=headers, on_delivery=on_delivery
        )
    assert producer.flush(WAIT_S) == 0
    return {"last": [last[partition] for partition in range(3)]}


def read_everything(isolation: str) -> list[Any]:
    """All records from the beginning to the ends, partition by partition."""
    settings = {"group.id": f"{GROUP}-none", "isolation.level": isolation}
    consumer = Consumer({**COMMON, **settings, "enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(3)])
    messages: list[Any] = [[], [], []]
    ends: set[int] = set()
    while len(ends) < 3:
        message = consumer.poll(WAIT_S)
        assert message is not None
        if message.error():
            ends.add(message.partition())
        else:
            messages[message.partition()].append(message)
    consumer.close()
    return [message for part in messages for message in part]


def consume() -> dict[str, Any]:
    messages = read_everything("read_uncommitted")
    return {
        "records": [
            [m.value().decode(), m.key().decode(), m.headers()[0][1].decode()] for m in messages
        ]
    }


def group() -> dict[str, Any]:
    settings = {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({**COMMON, **settings})
    consumer.subscribe([TOPIC])
    read = 0
    while read < 90:
        message = consumer.poll(WAIT_S)
        assert message is not None
        assert message.error() is None
        read += 1
    consumer.commit(asynchronous=False)
    places = [TopicPartition(TOPIC, partition) for partition in range(3)]
    committed = [place.offset for place in consumer.committed(places, WAIT_S)]
    consumer.close()
    admin = AdminClient(COMMON)
    state = admin.describe_consumer_groups([GROUP])[GROUP].result(WAIT_S).state.name
    return {"read": read, "committed": committed, "state": state.upper()}


def transaction() -> dict[str, Any]:
    producer = Producer({**COMMON, "transactional.id": TXN})
    producer.init_transactions(WAIT_S)
    settings = {"group.id": GROUP, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({**COMMON, **settings})
    consumer.subscribe([TOPIC])
    while not consumer.assignment():
        consumer.poll(0.1)
    for fate in ("aborted", "committed"):
        producer.begin_transaction()
        for n in range(10):
            producer.produce(TOPIC, f"{fate} {n}", partition=0)
        assert producer.flush(WAIT_S) == 0  # an abort drops what was not sent yet
        if fate == "aborted":
            producer.abort_transaction(WAIT_S)
        else:
            where = [TopicPartition(TOPIC, 0, 7)]
            metadata = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction(where, metadata, WAIT_S)
            producer.commit_transaction(WAIT_S)
    # an end is answered before its markers are written; the next of the same id waits for them
    Producer({**COMMON, "transactional.id": TXN}).init_transactions(WAIT_S)
    (place,) = consumer.committed([TopicPartition(TOPIC, 0)], WAIT_S)
    consumer.close()
    return {
        "read_committed": len(read_everything("read_committed")),
        "read_uncommitted": len(read_everything("read_uncommitted")),
        "offset": place.offset,
    }


if __name__ == "__main__":
    STEPS = (administration, produce, consume, group, transaction)
    print(json.dumps({part.__name__: part() for part in STEPS}))
