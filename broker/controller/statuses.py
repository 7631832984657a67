"""Statuses of partitions and replicas in the controller, and their permitted transitions.

Source: `PartitionStateMachine` and `ReplicaStateMachine` of Apache Kafka 3.9.
"""

from __future__ import annotations

from enum import Enum, auto

TopicPartition = tuple[str, int]


class PartitionStatus(Enum):
    """NEW never had a leader; ONLINE has one; OFFLINE lost it."""

    NON_EXISTENT = auto()
    NEW = auto()
    ONLINE = auto()
    OFFLINE = auto()


class ReplicaStatus(Enum):
    """Status of a replica whose topic is being deleted. INELIGIBLE: its broker is absent."""

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
    """A transition that the tables forbid: a bug."""


def next_partition_status(now: PartitionStatus, target: PartitionStatus) -> PartitionStatus:
    """`target`, if the tables permit it after `now`. Raises IllegalTransition."""
    if target not in PARTITION_TRANSITIONS[now]:
        raise IllegalTransition(f"partition {now.name} -> {target.name}")
    return target


def next_replica_status(now: ReplicaStatus, target: ReplicaStatus) -> ReplicaStatus:
    """`target`, if the tables permit it after `now`. Raises IllegalTransition."""
    if target not in REPLICA_TRANSITIONS[now]:
        raise IllegalTransition(f"replica {now.name} -> {target.name}")
    return target
