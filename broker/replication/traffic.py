"""Records that came in and went out, by topic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urteil.broker.replication.fetch_target import FetchTarget
    from urteil.broker.replication.partition_read import PartitionRead


class TopicTraffic:
    """Batches in bytes as they are in the log, and records, since the broker began."""

    __slots__ = ("bytes_in", "bytes_out", "messages_in")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.messages_in = 0


class Traffic:
    """What leaders appended and consumers were given; what followers fetch is not in it.

    Source: `BrokerTopicStats`. A topic that was deleted or moved away is forgotten, but stays in
    the sums.
    """

    __slots__ = ("_gone", "topics")

    def __init__(self) -> None:
        self.topics: dict[str, TopicTraffic] = {}
        self._gone = TopicTraffic()

    def appended(self, topic: str, size: int, records: int) -> None:
        """A leader's log took in `records`, `size` bytes together."""
        counts = self.topics.get(topic) or self._new(topic)
        counts.bytes_in += size
        counts.messages_in += records

    def sent(self, wanted: Iterable[FetchTarget], reads: Iterable[PartitionRead]) -> None:
        """A consumer is given these."""
        for one, read in zip(wanted, reads, strict=True):
            if read.size:
                counts = self.topics.get(one.topic) or self._new(one.topic)
                counts.bytes_out += read.size

    def forget(self, topic: str) -> None:
        """No partition of the topic is here any more."""
        counts = self.topics.pop(topic, None)
        if counts is not None:
            _add(self._gone, counts)

    def sums(self) -> TopicTraffic:
        """All topics together."""
        sums = TopicTraffic()
        for one in (self._gone, *self.topics.values()):
            _add(sums, one)
        return sums

    def _new(self, topic: str) -> TopicTraffic:
        counts = self.topics[topic] = TopicTraffic()
        return counts


def _add(sums: TopicTraffic, one: TopicTraffic) -> None:
    sums.bytes_in += one.bytes_in
    sums.bytes_out += one.bytes_out
    sums.messages_in += one.messages_in
