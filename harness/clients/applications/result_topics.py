"""Reads the topics that an application writes its results to, as readers of committed records see
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from urteil.chaos.observations import LabFailure
from urteil.harness.clients.applications.declaration import Context
from urteil.harness.evidence.outputs import Output

if TYPE_CHECKING:
    from kafka import KafkaConsumer, TopicPartition

POLL_MS = 500
IDLE_POLLS = 60
"""Polls without a record, and without a new position, after which a topic counts as unreadable."""

Decode = Callable[[bytes], str]


def text(value: bytes) -> str:
    """UTF-8."""
    return value.decode("utf-8", "backslashreplace")


def long(value: bytes) -> str:
    """A number as Java's LongSerializer writes it; other bytes as hexadecimal digits."""
    return str(int.from_bytes(value, "big", signed=True)) if len(value) == 8 else value.hex()


def read_topic(
    context: Context, topic: str, sink: str, *, key: Decode = text, value: Decode = text
) -> Iterator[Output]:
    """All committed records of a topic, partition by partition. LabFailure if it cannot be read to
    its end."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=list(context.bootstrap),
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        allow_auto_create_topics=False,
    )
    try:
        places = [
            TopicPartition(topic, number)
            for number in sorted(consumer.partitions_for_topic(topic) or ())
        ]
        if not places:
            raise LabFailure(f"topic {topic} of the application does not exist")
        for place, end in consumer.end_offsets(places).items():
            yield from _read_partition(consumer, place, end, sink, key, value)
    finally:
        consumer.close()


def _read_partition(
    consumer: KafkaConsumer, place: TopicPartition, end: int, sink: str, key: Decode, value: Decode
) -> Iterator[Output]:
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    idle, position = 0, consumer.position(place)
    while position < end:
        for record in consumer.poll(POLL_MS).get(place, ()):
            yield Output(
                sink=sink,
                partition=place.partition,
                position=record.offset,
                key=None if record.key is None else key(record.key),
                value=None if record.value is None else value(record.value),
                timestamp_ms=record.timestamp,
            )
        before, position = position, consumer.position(place)
        idle = idle + 1 if position == before else 0
        if idle == IDLE_POLLS:
            raise LabFailure(
                f"{place.topic}-{place.partition} ends at {end} and could be read to {position} "
                "only"
            )
