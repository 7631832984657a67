"""One action with kafka-python: ACTION BOOTSTRAP TOPIC RECORDS. Prints its outcome as JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

ACTION, BOOTSTRAP, TOPIC = sys.argv[1:4]
RECORDS = int(sys.argv[4])
PLACE = TopicPartition(TOPIC, 0)
DEADLINE_S = 60.0
COMMON: dict[str, Any] = {
    "bootstrap_servers": BOOTSTRAP,
    "client_id": "recipe",
    "request_timeout_ms": 2_000,
}


def produce() -> dict[str, Any]:
    """Sends each record when the one before it is acknowledged."""
    producer = KafkaProducer(
        **COMMON, enable_idempotence=True, acks="all", delivery_timeout_ms=30_000
    )
    longest_s = 0.0
    for number in range(RECORDS):
        began_s = time.monotonic()
        producer.send(TOPIC, str(number).encode(), partition=0).get(DEADLINE_S)
        longest_s = max(longest_s, time.monotonic() - began_s)
    throttled_ms = max(group.get("throttle-time-max", 0.0) for group in producer.metrics().values())
    producer.close()
    return {"acked": RECORDS, "throttled_ms": round(throttled_ms), "longest_s": longest_s}


def consumer(**more: Any) -> KafkaConsumer:
    """A Fetch returns one batch, which has one record."""
    return KafkaConsumer(
        **COMMON,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=1,
        **more,
    )


def consume() -> dict[str, Any]:
    with consumer() as reader:
        reader.assign([PLACE])
        return {"values": read(reader)}


def commit() -> dict[str, Any]:
    """Commits the offset after each record."""
    with consumer(group_id=TOPIC) as reader:
        reader.subscribe([TOPIC])
        values = read(reader, commits=True)
        return {"values": values, "committed": reader.committed(PLACE)}


def read(reader: KafkaConsumer, *, commits: bool = False) -> list[int]:
    values: list[int] = []
    deadline_s = time.monotonic() + DEADLINE_S
    while len(values) < RECORDS and time.monotonic() < deadline_s:
        for records in reader.poll(timeout_ms=500, max_records=1).values():
            values += [int(record.value) for record in records]
            if commits:
                reader.commit({PLACE: OffsetAndMetadata(records[-1].offset + 1, "", -1)})
    return values


print(json.dumps({"produce": produce, "consume": consume, "commit": commit}[ACTION]()))
