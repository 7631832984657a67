"""An idempotent producer in a thread, and its acknowledged records."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.waiting import until
from urteil.harness.clients.kafka_python_fixes import refresh_unknown_leader

Place = tuple[str, int, int]  # topic, partition, offset


class Traffic:
    """Sends to the topics in turn, every value once; `acknowledged` has the position of each.

    `errors` are abandoned sends with their values.
    """

    def __init__(
        self,
        bootstrap: Sequence[str],
        topics: Sequence[str],
        *,
        pause_s: float = 0.002,
        delivery_timeout_ms: int = 60_000,
    ) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=list(bootstrap),
            acks="all",
            enable_idempotence=True,
            max_block_ms=30_000,
            delivery_timeout_ms=delivery_timeout_ms,
        )
        refresh_unknown_leader(self._producer._sender._client._manager)
        self._topics = topics
        self._pause_s = pause_s
        self.acknowledged: dict[bytes, Place] = {}
        self.errors: dict[bytes, Exception] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._producer.flush(60)
        self._producer.close()

    def _run(self) -> None:
        numbers = itertools.count()
        while not self._stop.wait(self._pause_s):
            number = next(numbers)
            value = b"%d" % number
            future = self._producer.send(self._topics[number % len(self._topics)], value)
            future.add_callback(self._acknowledge, value)
            future.add_errback(self._give_up, value)

    def _acknowledge(self, value: bytes, where: object) -> None:
        place = (where.topic, where.partition, where.offset)  # type: ignore[attr-defined]
        self.acknowledged[value] = place

    def _give_up(self, value: bytes, error: Exception) -> None:
        self.errors[value] = error

    def await_more(self, count: int) -> None:
        goal = len(self.acknowledged) + count
        until(
            lambda: len(self.acknowledged) >= goal, f"{count} more acknowledgements", deadline_s=60
        )


def read_all(
    bootstrap: Sequence[str], topics: Sequence[str], partitions: int
) -> dict[bytes, list[Place]]:
    """Return all positions of each value."""
    consumer = KafkaConsumer(bootstrap_servers=list(bootstrap), auto_offset_reset="earliest")
    asked = [TopicPartition(topic, index) for topic in topics for index in range(partitions)]
    consumer.assign(asked)
    ends = consumer.end_offsets(asked)
    places: dict[bytes, list[Place]] = {}
    while any(
        consumer.position(topic_partition) < ends[topic_partition] for topic_partition in asked
    ):
        for records in consumer.poll(500).values():
            for record in records:
                place = (record.topic, record.partition, record.offset)
                places.setdefault(record.value, []).append(place)
    consumer.close()
    return places
