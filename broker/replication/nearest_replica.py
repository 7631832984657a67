"""The preferred read replica of a consumer: one in its own rack (KIP-392).

Source: `RackAwareReplicaSelector`, `ReplicaManager.findPreferredReadReplica`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from urteil.broker.replication.partition import Partition

if TYPE_CHECKING:
    from urteil.broker.replication.metadata_cache import MetadataCache

LEADER = -1


class NearestReplica:
    """Selects a replica for a consumer in `rack`, connected to `listener`."""

    __slots__ = ("_listener", "_metadata", "_rack")

    def __init__(self, metadata: MetadataCache, rack: str, listener: str) -> None:
        self._metadata = metadata
        self._rack = rack
        self._listener = listener

    def select(self, partition: Partition, fetch_offset: int) -> int:
        """A live member of the ISR in the consumer's rack that has the offset, or LEADER.

        LEADER if the leader is in the rack; otherwise the member with the highest end offset.
        """
        if not self._rack or not partition.is_leader or self._is_near(partition.broker_id):
            return LEADER
        near = [
            follower
            for follower in partition.followers.values()
            if follower.broker_id in partition.isr.committed
            and follower.start_offset <= fetch_offset <= follower.end_offset
            and self._is_near(follower.broker_id)
        ]
        best = max(
            near,
            key=lambda follower: (
                follower.end_offset,
                follower.last_caught_up_ms,
                follower.broker_id,
            ),
            default=None,
        )
        return LEADER if best is None else best.broker_id

    def _is_near(self, broker_id: int) -> bool:
        broker = self._metadata.brokers.get(broker_id)
        return broker is not None and (broker.rack, self._listener in broker.endpoints) == (
            self._rack,
            True,
        )
