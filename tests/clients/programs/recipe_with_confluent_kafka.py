"""One action with confluent-kafka (librdkafka): ACTION BOOTSTRAP TOPIC RECORDS. Prints its outcome
as JSON."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

ACTION, BOOTSTRAP, TOPIC = sys.argv[1:4]
RECORDS = int(sys.argv[4])
DEADLINE_S = 60.0
COMMON: dict[str, Any] = {
    "bootstrap.servers": BOOTSTRAP,
    "client.id": "recipe",
    "socket.timeout.ms": 2_000,
}


def produce() -> dict[str, Any]:
    """Sends each record when the one before it is acknowledged."""
    acked: list[int] = []
    throttles_ms = [0]

    def on_delivery(error: Any, message: Any) -> None:
        assert error is None, error
        acked.append(int(message.value()))

    producer = Producer(
        {
            **COMMON,
            "enable.idempotence": True,
            "linger.ms": 0,
            "delivery.timeout.ms": 30_000,
            "throttle_cb": lambda event: throttles_ms.append(round(event.throttle_time * 1000)),
        }
    )
    longest_s = 0.0
    for number in range(RECORDS):
        began_s = time.monotonic()
        producer.produce(TOPIC, str(number).encode(), partition=0, on_delivery=on_delivery)
        while len(acked) <= number:
            assert time.monotonic() < began_s + DEADLINE_S, f"{number} is not acknowledged"
            producer.poll(0.5)
        longest_s = max(longest_s, time.monotonic() - began_s)
    return {"acked": len(acked), "throttled_ms": max(throttles_ms), "longest_s": longest_s}


def consumer() -> Consumer:
    """A consumer whose every Fetch returns one batch of one record."""
    return Consumer(
        {
            **COMMON,
            "group.id": TOPIC,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "max.partition.fetch.bytes": 1,
        }
    )


def consume() -> dict[str, Any]:
    reader = consumer()
    reader.assign([TopicPartition(TOPIC, 0, 0)])
    values = read(reader)
    reader.close()
    return {"values": values}


def commit() -> dict[str, Any]:
    """Commits the offset after each record."""
    reader = consumer()
    reader.subscribe([TOPIC])
    values = read(reader, commits=True)
    (committed,) = reader.committed([TopicPartition(TOPIC, 0)], timeout=DEADLINE_S)
    reader.close()
    return {"values": values, "committed": committed.offset}


def read(reader: Consumer, *, commits: bool = False) -> list[int]:
    values: list[int] = []
    deadline_s = time.monotonic() + DEADLINE_S
    while len(values) < RECORDS and time.monotonic() < deadline_s:
        message = reader.poll(0.5)
        if message is None or message.error():
            continue
        values.append(int(message.value()))
        if commits:
            reader.commit(message=message, asynchronous=False)
    return values


print(json.dumps({"produce": produce, "consume": consume, "commit": commit}[ACTION]()))
