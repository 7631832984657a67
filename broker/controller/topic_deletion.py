"""Deletes topics that somebody wished away in `/admin/delete_topics` (`TopicDeletionManager`)."""

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
    """Runs in the events of one term; `answered` is called between them.

    A topic whose partitions are being reassigned is condemned first, and goes when they are not
    any more. From then on nothing else is done with it: its replicas are deleted, then its nodes.
    """

    def __init__(self, services: Services, *, enabled: bool) -> None:
        self._services = services
        self._enabled = enabled
        self._deletions = ReplicaDeletions()

    async def condemn(self, names: Sequence[str]) -> None:
        """Take in the wishes; those that cannot be granted are dropped."""
        context = self._services.context
        for name in names:
            if name not in context.topics or not self._enabled:
                await self._services.store.forget_deletion(name)
            elif name not in context.deleting:
                context.condemned.add(name)

    def admit(self) -> list[str]:
        """Condemned topics that nothing holds up any more are now on their way out."""
        context = self._services.context
        held_up = {topic for topic, _ in context.reassigning()}
        admitted = sorted(context.condemned - held_up)
        context.condemned.difference_update(admitted)
        context.deleting.update(admitted)
        return admitted

    async def start(self, admitted: Sequence[str]) -> None:
        """Tell everybody that these topics go, and have their replicas deleted."""
        context = self._services.context
        batch = self._services.batch()
        for topic in admitted:
            log.info("deleting topic %s", topic)
            tps = context.partitions_of(topic)
            batch.update_metadata(tps)
            self._deletions.add(topic, {tp: context.replicas(tp) for tp in tps})
            for tp in tps:
                context.move(tp, PartitionStatus.OFFLINE)
        self._services.send(batch)
        await self.resume()

    async def resume(self) -> None:
        """Remove what is done, ask brokers that can be asked."""
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

    def forget(self, topic: str) -> None:
        """Another of that name stands there: what is left of this one is not asked for any more."""
        if topic in self._deletions.topics:
            self._deletions.remove(topic)

    def broker_left(self, broker: int) -> None:
        self._deletions.broker_left(broker)

    def answered(self, broker: int, request: StopReplicaRequest, response: Any) -> bool:
        """Note what a broker deleted; whether `resume` has something to do now."""
        errors = {
            (one.topic_name, one.partition_index): ErrorCode(one.error_code)
            for one in response.partition_errors
        }
        for tp, delete in partitions_in(request).items():
            error = errors.get(tp, ErrorCode.NONE) or ErrorCode(response.error_code)
            if error:
                log.warning("StopReplica %s-%d: broker %d answered %s", *tp, broker, error.name)
            if delete:
                self._deletions.answered(broker, tp, deleted=not error)
        return bool(self._deletions.complete())

    def halted(self, topic: str) -> bool:
        """Whether a topic only waits for brokers that are away."""
        return topic in self._services.context.deleting and self._deletions.halted(topic)
