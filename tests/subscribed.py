"""kafka-python's consumers for tests, with the partitions of their topic known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka import KafkaConsumer

from tests.waiting import until


def subscribed(topic: str, bootstrap: str | Sequence[str], **settings: Any) -> KafkaConsumer:
    """A consumer of `topic` that knows its partitions, and has not polled yet.

    One that polls at once may join without any: kafka-python asks for metadata while it is made,
    and that answer, without the topic, passes for the one that its subscription asked for.
    """
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, **settings)
    until(lambda: consumer.partitions_for_topic(topic), topic)
    return consumer
