"""Produce, consume, group, transaction and administration with kafka-python."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError
from kafka.structs import OffsetAndMetadata

BOOTSTRAP, PREFIX = sys.argv[1:]
TOPIC, GROUP, TXN = f"{PREFIX}-data", f"{PREFIX}-group", f"{PREFIX}-txn"
COMMON: dict[str, Any] = {"bootstrap_servers": BOOTSTRAP}
PLACES = [TopicPartition(TOPIC, partition) for partition in range(3)]
WAIT_S = 30.0


def administration() -> dict[str, Any]:
    admin = KafkaAdminClient(**COMMON)
    new = NewTopic(TOPIC, 3, 3, topic_configs={"retention.ms": "3600000"})
    admin.create_topics([new], timeout_ms=30_000)
    try:
        admin.create_topics([new])
        again = "created"
    except TopicAlreadyExistsError:
        again = "exists"
    deadline = time.monotonic() + WAIT_S  # a broker may hear of a topic later than its maker
    while "3600000" not in (configs := _configs(admin)) and time.monotonic() < deadline:
        pass
    gone = f"{PREFIX}-gone"
    admin.create_topics([NewTopic(gone, 1, 1)], timeout_ms=30_000)
    admin.create_partitions({gone: NewPartitions(2)}, timeout_ms=30_000)
    admin.delete_topics([gone], timeout_ms=30_000)
    brokers = sorted(broker["broker_id"] for broker in admin.describe_cluster()["brokers"])
    admin.close()
    return {
        "retention": "3600000" if "3600000" in configs else configs,
        "again": again,
        "brokers": brokers,
    }


def _configs(admin: KafkaAdminClient) -> str:
    """All of the topic's as text, or why there are none."""
    try:
        return str(admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC)]))
    except UnknownTopicOrPartitionError as error:
        return str(error)


def produce() -> dict[str, Any]:
    producer = KafkaProducer(**COMMON, enable_idempotence=True, compression_type="gzip")
    sent = [
        producer.send(
            TOPIC,
            f"value {n}".encode(),
            f"key {n}".encode(),
            [("n", str(n).encode())],
            partition=n % 3,
        )
        for n in range(90)
    ]
    metadata = [future.get(WAIT_S) for future in sent]
    producer.close()
    return {"last": [max(t.offset for t in metadata if t.partition == p) for p in range(3)]}


def read_everything(isolation: str) -> list[Any]:
    consumer = KafkaConsumer(**COMMON, isolation_level=isolation)
    consumer.assign(PLACES)
    consumer.seek_to_beginning(*PLACES)
    ends = consumer.end_offsets(PLACES)
    messages: list[list[Any]] = [[], [], []]
    deadline = time.monotonic() + WAIT_S
    while any(consumer.position(place) < ends[place] for place in PLACES):
        assert time.monotonic() < deadline
        for place, records in consumer.poll(200).items():
            messages[place.partition] += records
    consumer.close()
    return [record for part in messages for record in part]


def consume() -> dict[str, Any]:
    messages = read_everything("read_uncommitted")
    return {
        "records": [[r.value.decode(), r.key.decode(), r.headers[0][1].decode()] for r in messages]
    }


def _member() -> KafkaConsumer:
    settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    consumer = KafkaConsumer(TOPIC, **COMMON, group_id=GROUP, **settings)
    # else it joins without partitions, and once more: a join that it may lose (test_lost_joins.py)
    while not consumer.partitions_for_topic(TOPIC):
        pass
    return consumer


def group() -> dict[str, Any]:
    consumer = _member()
    read, deadline = 0, time.monotonic() + WAIT_S
    while read < 90:
        assert time.monotonic() < deadline
        read += sum(map(len, consumer.poll(500).values()))
    consumer.commit()
    committed = [consumer.committed(place) for place in PLACES]
    consumer.close()
    admin = KafkaAdminClient(**COMMON)
    described = json.dumps(admin.describe_groups([GROUP]), default=str)
    admin.close()
    state = "EMPTY" if '"Empty"' in described else described
    return {"read": read, "committed": committed, "state": state}


def settle() -> None:
    """A transaction's end is answered before its markers are written; a next producer of the same
    id waits for them. (This client does not ask for stable offsets.)"""
    heir = KafkaProducer(**COMMON, transactional_id=TXN)
    heir.init_transactions()
    heir.close()


def transaction() -> dict[str, Any]:
    producer = KafkaProducer(**COMMON, transactional_id=TXN)
    producer.init_transactions()
    consumer = _member()
    deadline = time.monotonic() + WAIT_S
    while not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(100)
    for fate in ("aborted", "committed"):
        producer.begin_transaction()
        for n in range(10):
            producer.send(TOPIC, f"{fate} {n}".encode(), partition=0)
        producer.flush(WAIT_S)
        if fate == "aborted":
            producer.abort_transaction()
        else:
            where = {PLACES[0]: OffsetAndMetadata(7, "", -1)}
            producer.send_offsets_to_transaction(where, consumer.group_metadata())
            producer.commit_transaction()
    producer.close()
    settle()
    offset = consumer.committed(PLACES[0])
    consumer.close()
    return {
        "read_committed": len(read_everything("read_committed")),
        "read_uncommitted": len(read_everything("read_uncommitted")),
        "offset": offset,
    }


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    STEPS = (administration, produce, consume, group, transaction)
    print(json.dumps({part.__name__: part() for part in STEPS}))
