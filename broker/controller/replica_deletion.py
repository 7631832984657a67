"""Deletion of topics: the status of each replica that has to be deleted.

A topic is complete once all its replicas are deleted. The replicas of an absent broker wait until
it returns. Source: `TopicDeletionManager`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from urteil.broker.controller.statuses import (
    ReplicaStatus,
    TopicPartition,
    next_replica_status,
)

Replica = tuple[int, TopicPartition]


class ReplicaDeletions:
    """Plain state; the term sends StopReplica and deletes the znodes."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[Replica, ReplicaStatus]] = {}

    @property
    def topics(self) -> list[str]:
        return list(self._topics)

    def add(self, topic: str, replicas: Mapping[TopicPartition, Sequence[int]]) -> None:
        """Start the deletion of a topic."""
        self._topics[topic] = {
            (broker, tp): ReplicaStatus.OFFLINE
            for tp, brokers in replicas.items()
            for broker in brokers
        }

    def start(self, present: Collection[int]) -> list[Replica]:
        """Replicas to delete now. The replicas of absent brokers become ineligible."""
        started = []
        for statuses in self._topics.values():
            for replica, status in statuses.items():
                if status is ReplicaStatus.DELETION_INELIGIBLE and replica[0] in present:
                    self._move(replica, ReplicaStatus.OFFLINE)
                if statuses[replica] is ReplicaStatus.OFFLINE:
                    here = replica[0] in present
                    started += [replica] if here else []
                    self._move(
                        replica,
                        ReplicaStatus.DELETION_STARTED
                        if here
                        else ReplicaStatus.DELETION_INELIGIBLE,
                    )
        return started

    def handle_response(self, broker: int, tp: TopicPartition, *, deleted: bool) -> None:
        """Record a StopReplica answer for one partition; late answers are ignored."""
        replica = (broker, tp)
        status = self._topics.get(tp[0], {}).get(replica)
        if status is ReplicaStatus.DELETION_STARTED:
            self._move(
                replica,
                ReplicaStatus.DELETION_SUCCESSFUL if deleted else ReplicaStatus.DELETION_INELIGIBLE,
            )

    def broker_left(self, broker: int) -> None:
        """Mark its started deletions ineligible; they start again when the broker returns."""
        for statuses in self._topics.values():
            for replica, status in statuses.items():
                if replica[0] == broker and status is ReplicaStatus.DELETION_STARTED:
                    self._move(replica, ReplicaStatus.DELETION_INELIGIBLE)

    def complete(self) -> list[str]:
        """Topics whose replicas are all deleted."""
        done = ReplicaStatus.DELETION_SUCCESSFUL
        return [
            topic
            for topic, statuses in self._topics.items()
            if all(status is done for status in statuses.values())
        ]

    def is_waiting_for_brokers(self, topic: str) -> bool:
        """Whether every remaining replica is on an absent broker."""
        settled = (ReplicaStatus.DELETION_SUCCESSFUL, ReplicaStatus.DELETION_INELIGIBLE)
        statuses = self._topics.get(topic, {}).values()
        ineligible = ReplicaStatus.DELETION_INELIGIBLE in statuses
        return ineligible and all(status in settled for status in statuses)

    def remove(self, topic: str) -> None:
        del self._topics[topic]

    def _move(self, replica: Replica, target: ReplicaStatus) -> None:
        statuses = self._topics[replica[1][0]]
        statuses[replica] = next_replica_status(statuses[replica], target)
