"""Deletion of the topics that `/admin/delete_topics` lists (`TopicDeletionManager`)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from urteil.broker.controller.replica_deletion import ReplicaDeletions
from urteil.broker.controller.request_batch import partitions_in
from urteil.broker.controller.services import Services
from urteil.broker.controller.statuses import PartitionStatus
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import StopReplicaRequest

log = logging.getLogger("controller")


class TopicDeletion:
    """Called by the event handlers of one term; `handle_response` is called between events.

    A topic under reassignment waits in `pending_deletion` until the reassignment ends. Then the
    controller only deletes it: first its replicas, then its znodes.
    """

    def __init__(self, services: Services, *, enabled: bool) -> None:
        self._services = services
        self._enabled = enabled
        self._deletions = ReplicaDeletions()

    async def register(self, names: Sequence[str]) -> None:
        """Register requested deletions; drop requests for unknown topics or if deletion is off."""
        context = self._services.context
        for name in names:
            if name not in context.topics or not self._enabled:
                await self._services.store.delete_deletion_request(name)
            elif name not in context.deleting:
                context.pending_deletion.add(name)

    def select_deletable(self) -> list[str]:
        """Mark the pending topics without a reassignment as being deleted, and return them."""
        context = self._services.context
        held_up = {topic for topic, _ in context.partitions_under_reassignment()}
        deletable = sorted(context.pending_deletion - held_up)
        context.pending_deletion.difference_update(deletable)
        context.deleting.update(deletable)
        return deletable

    async def start(self, deletable: Sequence[str]) -> None:
        """Announce the deletion of these topics to all brokers, and delete their replicas."""
        context = self._services.context
        batch = self._services.batch()
        for topic in deletable:
            log.info("deleting topic %s", topic)
            tps = context.partitions_of(topic)
            batch.update_metadata(tps)
            self._deletions.add(topic, {tp: context.replicas(tp) for tp in tps})
            for tp in tps:
                context.move(tp, PartitionStatus.OFFLINE)
        self._services.send(batch)
        await self.resume()

    async def resume(self) -> None:
        """Remove completed topics, and send StopReplica to brokers that are back."""
        for topic in self._deletions.complete():
            context = self._services.context
            await self._services.store.delete_topic(topic, context.topics[topic].topic_id)
            self._deletions.remove(topic)
            context.remove_topic(topic)
            log.info("deleted topic %s", topic)
        batch = self._services.batch()
        for broker, tp in self._deletions.start(self._services.context.present):
            batch.stop_replica(broker, tp, delete=True)
        self._services.send(batch)

    def abandon(self, topic: str) -> None:
        """Stop the deletion of a topic that was created anew under the same name."""
        if topic in self._deletions.topics:
            self._deletions.remove(topic)

    def broker_left(self, broker: int) -> None:
        self._deletions.broker_left(broker)

    def handle_response(self, broker: int, request: StopReplicaRequest, response: Any) -> bool:
        """Record what a broker deleted; True if `resume` has a topic to remove."""
        errors = {
            (partition_error.topic_name, partition_error.partition_index): ErrorCode(
                partition_error.error_code
            )
            for partition_error in response.partition_errors
        }
        for tp, delete in partitions_in(request).items():
            error = errors.get(tp, ErrorCode.NONE) or ErrorCode(response.error_code)
            if error:
                log.warning("StopReplica %s-%d: broker %d answered %s", *tp, broker, error.name)
            if delete:
                self._deletions.handle_response(broker, tp, deleted=not error)
        return bool(self._deletions.complete())

    def is_waiting_for_brokers(self, topic: str) -> bool:
        """Whether the deletion of a topic waits for absent brokers only."""
        return topic in self._services.context.deleting and self._deletions.is_waiting_for_brokers(
            topic
        )
