"""Where readers of committed records end: at the last record that they receive.

A partition that transactions wrote to ends with their markers, which no reader receives. So a
reader that has everything stands before the end offset. Behind an open transaction readers receive
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from urteil.chaos.waiting import until
from urteil.harness.protocol.metadata_requests import Slot

TAIL = 200
"""The offsets before the end in which the last record is looked for."""
DEADLINE_S = 5.0
POLL_MS = 100


def visible_ends(bootstrap: Sequence[str], ends: Mapping[Slot, int]) -> dict[Slot, int]:
    """The offset behind the last visible record of each partition with these end offsets; where
    the last `TAIL` offsets have none, the offset before these."""
    from kafka import KafkaConsumer, TopicPartition
    from kafka.errors import KafkaError

    visible = {slot: max(0, end - TAIL) for slot, end in ends.items()}
    places = [TopicPartition(*slot) for slot in ends]
    if not places:
        return visible
    consumer = KafkaConsumer(
        bootstrap_servers=list(bootstrap),
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )

    def read() -> bool:
        for place, records in consumer.poll(POLL_MS).items():
            visible[place.topic, place.partition] = records[-1].offset + 1
        return all(consumer.position(place) >= ends[tuple(place)] for place in places)

    try:
        consumer.assign(places)
        for place in places:
            consumer.seek(place, visible[tuple(place)])
        until(read, deadline_s=DEADLINE_S, poll_s=0.0)
    except KafkaError:
        return dict(ends)
    finally:
        consumer.close()
    return visible
