"""Topics on their way out: which replicas still have to be deleted, and by whom.

A topic goes once all its replicas are deleted; those on brokers that are away wait for them.
Source: `TopicDeletionManager`.
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
    """Plain state; the term sends StopReplica and removes the nodes."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[Replica, ReplicaStatus]] = {}

    @property
    def topics(self) -> list[str]:
        return list(self._topics)

    def add(self, topic: str, replicas: Mapping[TopicPartition, Sequence[int]]) -> None:
        """Start to delete a topic."""
        self._topics[topic] = {
            (broker, tp): ReplicaStatus.OFFLINE
            for tp, brokers in replicas.items()
            for broker in brokers
        }

    def start(self, present: Collection[int]) -> list[Replica]:
        """Replicas whose brokers are to be asked now; the others wait for their brokers."""
        asked = []
        for statuses in self._topics.values():
            for replica, status in statuses.items():
                if status is ReplicaStatus.DELETION_INELIGIBLE and replica[0] in present:
                    self._move(replica, ReplicaStatus.OFFLINE)
                if statuses[replica] is ReplicaStatus.OFFLINE:
                    here = replica[0] in present
                    asked += [replica] if here else []
                    self._move(
                        replica,
                        ReplicaStatus.DELETION_STARTED
                        if here
                        else ReplicaStatus.DELETION_INELIGIBLE,
                    )
        return asked

    def answered(self, broker: int, tp: TopicPartition, *, deleted: bool) -> None:
        """A broker answered StopReplica for one partition; late answers are ignored."""
        replica = (broker, tp)
        status = self._topics.get(tp[0], {}).get(replica)
        if status is ReplicaStatus.DELETION_STARTED:
            self._move(
                replica,
                ReplicaStatus.DELETION_SUCCESSFUL if deleted else ReplicaStatus.DELETION_INELIGIBLE,
            )

    def broker_left(self, broker: int) -> None:
        """What it was asked for is unknown: it is asked again when it comes back."""
        for statuses in self._topics.values():
            for replica, status in statuses.items():
                if replica[0] == broker and status is ReplicaStatus.DELETION_STARTED:
                    self._move(replica, ReplicaStatus.DELETION_INELIGIBLE)

    def complete(self) -> list[str]:
        """Topics without a replica left."""
        done = ReplicaStatus.DELETION_SUCCESSFUL
        return [
            topic
            for topic, statuses in self._topics.items()
            if all(status is done for status in statuses.values())
        ]

    def halted(self, topic: str) -> bool:
        """Whether nothing more can be done for now: what is left waits for brokers."""
        settled = (ReplicaStatus.DELETION_SUCCESSFUL, ReplicaStatus.DELETION_INELIGIBLE)
        statuses = self._topics.get(topic, {}).values()
        ineligible = ReplicaStatus.DELETION_INELIGIBLE in statuses
        return ineligible and all(status in settled for status in statuses)

    def remove(self, topic: str) -> None:
        del self._topics[topic]

    def _move(self, replica: Replica, target: ReplicaStatus) -> None:
        statuses = self._topics[replica[1][0]]
        statuses[replica] = next_replica_status(statuses[replica], target)
