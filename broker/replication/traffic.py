"""Counters of produced and consumed records, by topic."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from urteil.broker.replication.fetch_target import FetchTarget
    from urteil.broker.replication.partition_read import PartitionRead


class TopicTraffic:
    """Bytes of batches and numbers of records since the broker started."""

    __slots__ = ("bytes_in", "bytes_out", "messages_in")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.messages_in = 0


class Traffic:
    """Counts what leaders append and consumers fetch; fetches of followers do not count.

    Source: `BrokerTopicStats`. A topic that was deleted or moved away is dropped, but stays in the
    sums.
    """

    __slots__ = ("_gone", "topics")

    def __init__(self) -> None:
        self.topics: dict[str, TopicTraffic] = {}
        self._gone = TopicTraffic()

    def count_append(self, topic: str, size: int, records: int) -> None:
        """Count an append of `records` with `size` bytes."""
        counts = self.topics.get(topic) or self._new(topic)
        counts.bytes_in += size
        counts.messages_in += records

    def count_response(
        self, fetch_targets: Iterable[FetchTarget], reads: Iterable[PartitionRead]
    ) -> None:
        """Count the response to a consumer."""
        for fetch_target, read in zip(fetch_targets, reads, strict=True):
            if read.size:
                counts = self.topics.get(fetch_target.topic) or self._new(fetch_target.topic)
                counts.bytes_out += read.size

    def forget(self, topic: str) -> None:
        """Drop a topic without local partitions."""
        counts = self.topics.pop(topic, None)
        if counts is not None:
            _add(self._gone, counts)

    def sums(self) -> TopicTraffic:
        """The sums over all topics."""
        sums = TopicTraffic()
        for traffic in (self._gone, *self.topics.values()):
            _add(sums, traffic)
        return sums

    def _new(self, topic: str) -> TopicTraffic:
        counts = self.topics[topic] = TopicTraffic()
        return counts


def _add(sums: TopicTraffic, traffic: TopicTraffic) -> None:
    sums.bytes_in += traffic.bytes_in
    sums.bytes_out += traffic.bytes_out
    sums.messages_in += traffic.messages_in
