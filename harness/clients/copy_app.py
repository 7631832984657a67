"""An example application for pipelines: it copies records from one topic to another, at least once.

    urteil run pipeline --app "python -m urteil.harness.clients.copy_app"

It commits offsets only after the copies were acknowledged, so that a crash repeats records and
loses none. Keys and values stay unchanged, because the lab identifies copies by them.
"""

from __future__ import annotations

import os
import signal

from confluent_kafka import Consumer, KafkaException, Message, Producer

BATCH = 200
POLL_S = 0.5


def main() -> None:
    """Copy until SIGTERM."""
    servers = {
        "bootstrap.servers": os.environ["URTEIL_BOOTSTRAP_SERVERS"],
        "client.id": os.environ["URTEIL_CLIENT_ID"],
    }
    consumer = Consumer(
        servers
        | {
            "group.id": os.environ["URTEIL_GROUP"],
            "session.timeout.ms": 6_000,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = Producer(servers | {"enable.idempotence": True, "linger.ms": 5})
    consumer.subscribe([os.environ["URTEIL_INPUT_TOPIC"]])
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: stopped.append(number))
    while not stopped:
        records = [record for record in consumer.consume(BATCH, POLL_S) if record.error() is None]
        if records and copy(records, producer, os.environ["URTEIL_OUTPUT_TOPIC"]):
            commit(consumer, records)
    consumer.close()


def copy(records: list[Message], producer: Producer, topic: str) -> bool:
    """Produce a copy of each record. Exits if one of them is not acknowledged."""
    failed: list[object] = []
    for record in records:
        producer.produce(
            topic,
            record.value(),
            record.key(),
            on_delivery=lambda error, _message: failed.append(error) if error else None,
        )
    producer.flush()
    if failed:
        raise SystemExit(f"a copy was not acknowledged: {failed[0]}")
    return True


def commit(consumer: Consumer, records: list[Message]) -> None:
    """Commit the offsets of the copied records. After a rebalance the commit is rejected, and the
    new owners copy the records again."""
    for record in records:
        try:
            consumer.store_offsets(record)
        except KafkaException:
            continue
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        print(f"not committed: {error}", flush=True)


if __name__ == "__main__":
    main()
