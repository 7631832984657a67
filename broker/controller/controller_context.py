"""The controller's view of the cluster in one term: brokers, topics, partition states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from uuid import UUID

from urteil.broker.controller.replica_assignment import (
    ReplicaAssignment,
    assignment_of,
    by_topic,
    with_assignments,
)
from urteil.broker.controller.statuses import (
    PartitionStatus,
    TopicPartition,
    next_partition_status,
)
from urteil.broker.zookeeper.znodes import BrokerInfo, PartitionState, TopicAssignment

NO_LEADER = -1


@dataclass(slots=True)
class ControllerContext:
    """Plain state without I/O. `epoch_version` is the version of `/controller_epoch`.

    `pending_deletion` has the topics whose deletion waits for a reassignment, `deleting` those
    whose replicas are being deleted. `offline` has the partitions in failed log directories, by
    broker.
    """

    controller_id: int
    epoch: int
    epoch_version: int
    brokers: dict[int, BrokerInfo] = field(default_factory=dict)
    shutting_down: set[int] = field(default_factory=set)
    topics: dict[str, TopicAssignment] = field(default_factory=dict)
    states: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    statuses: dict[TopicPartition, PartitionStatus] = field(default_factory=dict)
    pending_deletion: set[str] = field(default_factory=set)
    deleting: set[str] = field(default_factory=set)
    offline: dict[int, set[TopicPartition]] = field(default_factory=dict)
    names: dict[UUID, str] = field(default_factory=dict)

    @property
    def present(self) -> frozenset[int]:
        """Registered brokers."""
        return frozenset(self.brokers)

    @property
    def live_brokers(self) -> frozenset[int]:
        """Registered brokers that are not shutting down. Only these may lead or join an ISR."""
        return frozenset(self.brokers) - self.shutting_down

    def present_for(self, tp: TopicPartition) -> frozenset[int]:
        """Registered brokers, without those whose log directory with this partition failed."""
        return self.present - self._failed_brokers(tp)

    def live_for(self, tp: TopicPartition) -> frozenset[int]:
        """Live brokers, without those whose log directory with this partition failed."""
        return self.live_brokers - self._failed_brokers(tp)

    def _failed_brokers(self, tp: TopicPartition) -> AbstractSet[int]:
        if not self.offline:
            return frozenset()
        return {broker for broker, tps in self.offline.items() if tp in tps}

    def unnoticed_restarts(self) -> list[BrokerInfo]:
        """Registered brokers that restarted while there was no controller.

        Such a broker registered after the last change of a state that has it in the ISR: a
        controller would have removed it from the ISR when it left. It may have lost unflushed
        records that the brokers without a restart still have. If every broker restarted, the
        first to register counts as not restarted: under Apache Kafka it would have been alone,
        and the others truncate to it in its new epoch.
        """
        brokers = {
            broker
            for state in self.states.values()
            for broker in state.isr
            if broker in self.brokers and self.brokers[broker].epoch > state.zxid
        }
        if brokers and brokers == self.present:
            brokers.remove(min(brokers, key=lambda broker: self.brokers[broker].epoch))
        return [self.brokers[broker] for broker in sorted(brokers)]

    def add_topic(self, topic: str, assignment: TopicAssignment) -> list[TopicPartition]:
        """Add a topic, or its new partitions. Returns the partitions that are new."""
        self.topics[topic] = assignment
        if assignment.topic_id is not None:
            self.names[assignment.topic_id] = topic
        added = [
            (topic, partition)
            for partition in assignment.partitions
            if (topic, partition) not in self.statuses
        ]
        for tp in added:
            self.statuses[tp] = PartitionStatus.NON_EXISTENT
            self.move(tp, PartitionStatus.NEW)
        return added

    def remove_topic(self, topic: str) -> None:
        assignment = self.topics.pop(topic)
        self.deleting.discard(topic)
        self.pending_deletion.discard(topic)
        for tps in self.offline.values():
            tps.difference_update([tp for tp in tps if tp[0] == topic])
        if assignment.topic_id is not None:
            self.names.pop(assignment.topic_id, None)
        for partition in assignment.partitions:
            self.states.pop((topic, partition), None)
            del self.statuses[topic, partition]

    def record(self, tp: TopicPartition, state: PartitionState) -> None:
        """Store a state that ZooKeeper has."""
        self.states[tp] = state
        online = state.leader in self.present_for(tp)
        self.move(tp, PartitionStatus.ONLINE if online else PartitionStatus.OFFLINE)

    def move(self, tp: TopicPartition, target: PartitionStatus) -> None:
        self.statuses[tp] = next_partition_status(self.statuses[tp], target)

    def replicas(self, tp: TopicPartition) -> tuple[int, ...]:
        return self.topics[tp[0]].partitions[tp[1]]

    def assignment(self, tp: TopicPartition) -> ReplicaAssignment:
        """Empty for a partition that does not exist."""
        topic = self.topics.get(tp[0])
        return ReplicaAssignment() if topic is None else assignment_of(topic, tp[1])

    def assign(self, assignments: Mapping[TopicPartition, ReplicaAssignment]) -> None:
        """Replace the assignments of existing partitions."""
        for topic, changed in by_topic(assignments).items():
            self.topics[topic] = with_assignments(self.topics[topic], changed)

    def partitions_under_reassignment(self) -> list[TopicPartition]:
        """Partitions under reassignment, including those of topics that await deletion."""
        return [
            (topic, partition)
            for topic, assigned in self.topics.items()
            if (assigned.adding or assigned.removing) and topic not in self.deleting
            for partition in sorted(assigned.adding.keys() | assigned.removing.keys())
        ]

    def is_deletion_requested(self, topic: str) -> bool:
        """Whether the deletion of this topic was requested."""
        return topic in self.deleting or topic in self.pending_deletion

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        return [(topic, partition) for partition in self.topics[topic].partitions]

    def partitions(self) -> list[TopicPartition]:
        """Every partition of every topic that is not being deleted."""
        return [tp for tp in self.statuses if tp[0] not in self.deleting]

    def partitions_on(self, brokers: Iterable[int]) -> list[TopicPartition]:
        """Partitions (not being deleted) with a replica on one of the brokers."""
        removed = frozenset(brokers)
        return [tp for tp in self.partitions() if removed.intersection(self.replicas(tp))]
