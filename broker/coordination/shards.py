"""The shards of a coordinator: one for each partition of its topic that this broker leads.

A group belongs to one partition of `__consumer_offsets`, a transactional id to one of
`__transaction_state`: the hash of its name chooses the partition. The leader of the partition
coordinates it and holds its state in a shard, which is loaded from the log when leadership begins
and dropped when leadership ends. An asynchronous step that began under a shard checks afterwards
that the coordinator still owns this very shard: a new term of leadership has a new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from urteil.broker.base.coordinator_partition import partition_for
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.wire.errors import ErrorCode

APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}
"""The error that a client receives for an error of an append to the coordinator's topic."""


class Shard(Protocol):
    """The state of one partition of the coordinator's topic."""

    partition: int
    is_loaded: bool


S = TypeVar("S", bound=Shard)


class Shards(Generic[S]):
    """Shards by partition; `default_partitions` counts while the topic does not exist."""

    def __init__(self, topic: str, metadata: MetadataCache, default_partitions: int) -> None:
        self._topic = topic
        self._metadata = metadata
        self._default_partitions = default_partitions
        self._by_partition: dict[int, S] = {}

    def partition_for(self, key: str) -> int:
        """The partition that holds a group or a transactional id."""
        count = len(self._metadata.topics.get(self._topic, ()))
        return partition_for(key, count or self._default_partitions)

    def find(self, key: str) -> tuple[S | None, ErrorCode]:
        """The loaded shard that holds a key, or the error that a client receives instead."""
        shard = self._by_partition.get(self.partition_for(key))
        if shard is None:
            return None, ErrorCode.NOT_COORDINATOR
        if not shard.is_loaded or self._topic not in self._metadata.topics:
            # without the topic's metadata the number of partitions is a guess
            return None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return shard, ErrorCode.NONE

    def add(self, shard: S) -> S:
        self._by_partition[shard.partition] = shard
        return shard

    def get(self, partition: int) -> S | None:
        return self._by_partition.get(partition)

    def pop(self, partition: int) -> S | None:
        return self._by_partition.pop(partition, None)

    def owns(self, shard: S) -> bool:
        """Whether this shard is the present one of its partition."""
        return self._by_partition.get(shard.partition) is shard

    @property
    def are_loaded(self) -> bool:
        return all(shard.is_loaded for shard in self._by_partition.values())

    def clear(self) -> None:
        self._by_partition.clear()

    def __contains__(self, partition: int) -> bool:
        return partition in self._by_partition

    def __iter__(self) -> Iterator[S]:
        """All shards, loaded or not; shards may be added and removed during the iteration."""
        return iter(list(self._by_partition.values()))
