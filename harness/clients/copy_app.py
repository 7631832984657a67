"""An application to be judged: it copies records from one topic to another, at least once.

    urteil run pipeline --app "python -m urteil.harness.clients.copy_app"

It commits what it has read only when the copies were acknowledged, so that a crash repeats records
and loses none. Key and value stay as they are: they tell the lab which record a copy is of.
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
        found = [one for one in consumer.consume(BATCH, POLL_S) if one.error() is None]
        if found and copy(found, producer, os.environ["URTEIL_OUTPUT_TOPIC"]):
            commit(consumer, found)
    consumer.close()


def copy(found: list[Message], producer: Producer, topic: str) -> bool:
    """Produce a copy of each record; False when one of them was not acknowledged."""
    failed: list[object] = []
    for one in found:
        producer.produce(
            topic,
            one.value(),
            one.key(),
            on_delivery=lambda error, _message: failed.append(error) if error else None,
        )
    producer.flush()
    if failed:
        raise SystemExit(f"a copy was not acknowledged: {failed[0]}")
    return True


def commit(consumer: Consumer, found: list[Message]) -> None:
    """Commit what was copied. After a rebalance it is refused, and others copy it once more."""
    for one in found:
        try:
            consumer.store_offsets(one)
        except KafkaException:
            continue
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        print(f"not committed: {error}", flush=True)


if __name__ == "__main__":
    main()
