"""States of partitions and replicas as the controller sees them, and which may follow which.

Source: `PartitionStateMachine` and `ReplicaStateMachine` of Apache Kafka 3.9.
"""

from __future__ import annotations

from enum import Enum, auto

TopicPartition = tuple[str, int]


class PartitionStatus(Enum):
    """NEW has replicas but no leader ever; ONLINE has a leader; OFFLINE lost it."""

    NON_EXISTENT = auto()
    NEW = auto()
    ONLINE = auto()
    OFFLINE = auto()


class ReplicaStatus(Enum):
    """Of a replica whose topic is being deleted. INELIGIBLE: not now, its broker is away."""

    OFFLINE = auto()
    DELETION_STARTED = auto()
    DELETION_SUCCESSFUL = auto()
    DELETION_INELIGIBLE = auto()


PARTITION_TRANSITIONS = {
    PartitionStatus.NON_EXISTENT: {PartitionStatus.NEW},
    PartitionStatus.NEW: {PartitionStatus.ONLINE, PartitionStatus.OFFLINE},
    PartitionStatus.ONLINE: {PartitionStatus.ONLINE, PartitionStatus.OFFLINE},
    PartitionStatus.OFFLINE: {
        PartitionStatus.ONLINE,
        PartitionStatus.OFFLINE,
        PartitionStatus.NON_EXISTENT,
    },
}

REPLICA_TRANSITIONS = {
    ReplicaStatus.OFFLINE: {ReplicaStatus.DELETION_STARTED, ReplicaStatus.DELETION_INELIGIBLE},
    ReplicaStatus.DELETION_STARTED: {
        ReplicaStatus.DELETION_SUCCESSFUL,
        ReplicaStatus.DELETION_INELIGIBLE,
    },
    ReplicaStatus.DELETION_INELIGIBLE: {ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_INELIGIBLE},
    ReplicaStatus.DELETION_SUCCESSFUL: set(),
}


class IllegalTransition(Exception):
    """A bug: the tables above do not allow it."""


def next_partition_status(now: PartitionStatus, target: PartitionStatus) -> PartitionStatus:
    """`target`, if it may follow `now`. Raises IllegalTransition."""
    if target not in PARTITION_TRANSITIONS[now]:
        raise IllegalTransition(f"partition {now.name} -> {target.name}")
    return target


def next_replica_status(now: ReplicaStatus, target: ReplicaStatus) -> ReplicaStatus:
    """`target`, if it may follow `now`. Raises IllegalTransition."""
    if target not in REPLICA_TRANSITIONS[now]:
        raise IllegalTransition(f"replica {now.name} -> {target.name}")
    return target
