"""The replicas of one partition under reassignment (KIP-455), without I/O.

Source: `ReplicaAssignment` and `KafkaController.validateReplicas` of Apache Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.zookeeper.znodes import TopicAssignment


@dataclass(frozen=True, slots=True)
class ReplicaAssignment:
    """All replicas, targets first, and which of them are being added and removed."""

    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas before the reassignment, in the order of the target."""
        return _exclude(self.replicas, self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        return _exclude(self.replicas, self.removing)

    @property
    def is_under_way(self) -> bool:
        return bool(self.adding or self.removing)

    def to(self, target: Sequence[int]) -> ReplicaAssignment:
        """A reassignment from the origin to `target`, whatever the previous target was."""
        replicas = tuple(dict.fromkeys((*target, *self.origin)))
        return ReplicaAssignment(
            replicas, _exclude(replicas, self.origin), _exclude(replicas, tuple(target))
        )

    def complete(self) -> ReplicaAssignment:
        return ReplicaAssignment(self.target)

    def is_complete(self, isr: Collection[int], live: Collection[int]) -> bool:
        """Whether the old replicas may be deleted: all targets are in sync, and one can lead.

        Apache Kafka does not require a live target: it deletes the last live copy if all targets
        have just died.
        """
        if not self.is_under_way:
            return True
        return set(self.target) <= set(isr) and any(replica in live for replica in self.target)


def assignment_of(topic: TopicAssignment, partition: int) -> ReplicaAssignment:
    """The assignment of a partition; empty if the partition does not exist."""
    return ReplicaAssignment(
        topic.partitions.get(partition, ()),
        topic.adding.get(partition, ()),
        topic.removing.get(partition, ()),
    )


def with_assignments(
    topic: TopicAssignment, assignments: Mapping[int, ReplicaAssignment]
) -> TopicAssignment:
    """The topic with new assignments for some partitions."""
    adding = {**topic.adding, **{p: assignment.adding for p, assignment in assignments.items()}}
    removing = {
        **topic.removing,
        **{p: assignment.removing for p, assignment in assignments.items()},
    }
    return replace(
        topic,
        partitions={
            **topic.partitions,
            **{p: assignment.replicas for p, assignment in assignments.items()},
        },
        adding={p: replicas for p, replicas in adding.items() if replicas},
        removing={p: replicas for p, replicas in removing.items() if replicas},
    )


def by_topic(
    assignments: Mapping[TopicPartition, ReplicaAssignment],
) -> dict[str, dict[int, ReplicaAssignment]]:
    grouped: dict[str, dict[int, ReplicaAssignment]] = {}
    for (topic, partition), assignment in assignments.items():
        grouped.setdefault(topic, {})[partition] = assignment
    return grouped


def find_target_error(
    now: ReplicaAssignment, target: Sequence[int], live: Collection[int], isr: Collection[int]
) -> str | None:
    """The reason why `target` cannot be the new replicas; None if it can.

    The last rule is KRaft's: with ZooKeeper, Apache Kafka deletes the only replicas in sync, and
    their records are lost.
    """
    assignment = now.to(target)
    if not target:
        return "Empty replica list specified in partition reassignment."
    if len(set(target)) != len(target):
        return f"Duplicate replica ids in partition reassignment replica list: {list(target)}"
    if any(replica < 0 for replica in target):
        return f"Invalid broker id in replica list: {list(target)}"
    if not set(assignment.adding) <= set(live):
        return (
            "Replica assignment has brokers that are not alive. Replica list: "
            f"{list(assignment.adding)}, live broker list: {sorted(live)}"
        )
    if isr and not set(isr) & set(assignment.replicas):
        return (
            f"None of {list(assignment.replicas)} is in sync: that would lose what {list(isr)} hold"
        )
    return None


def _exclude(all_of: Sequence[int], some: Collection[int]) -> tuple[int, ...]:
    left_out = set(some)
    return tuple(replica for replica in all_of if replica not in left_out)
