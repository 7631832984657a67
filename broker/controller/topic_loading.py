"""Loading of topics from ZooKeeper into the controller's context."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from urteil.broker.controller.services import Services
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.controller.topic_deletion import TopicDeletion
from urteil.broker.zookeeper import znodes
from urteil.broker.zookeeper.session import Session, Watch
from urteil.broker.zookeeper.znodes import TopicAssignment

log = logging.getLogger("controller")


class TopicLoading:
    """Adds new topics and partitions to the context; removes topics that vanished."""

    def __init__(
        self,
        zk: Session,
        services: Services,
        deletion: TopicDeletion,
        make_topic_id: Callable[[], UUID],
    ) -> None:
        self._zk = zk
        self._services = services
        self._deletion = deletion
        self._make_topic_id = make_topic_id
        self._changed: set[str] = set()  # topics whose nodes changed since they were read

    def mark_changed(self, path: str) -> None:
        """Read the topic of this znode again at the next `load`."""
        self._changed.add(path.removeprefix(f"{znodes.TOPICS}/"))

    async def load(self, on_topics: Watch, on_topic: Watch) -> list[TopicPartition]:
        """Load new topics and new partitions, and set both watches; returns the new partitions."""
        context = self._services.context
        names = await self._zk.children(znodes.TOPICS, on_topics)
        to_read = [name for name in names if name not in context.topics or name in self._changed]
        self._changed.clear()
        for topic in set(context.topics) - set(names) - context.deleting:
            log.warning("topic %s vanished from ZooKeeper", topic)
            context.remove_topic(topic)
        added = []
        for topic, (stored, version) in (
            await self._services.store.read_topics(to_read, on_topic)
        ).items():
            assignment = await self._merge_topic(topic, stored, version)
            if assignment is not None:
                added += context.add_topic(topic, assignment)
        for tp, state in (await self._services.store.read_states(added)).items():
            context.record(tp, state)
        return added

    async def _merge_topic(
        self, topic: str, stored: TopicAssignment, version: int
    ) -> TopicAssignment | None:
        """The assignment to record for a topic whose znode has `stored`; None if nothing is new.

        Only new partitions of a known topic count: its replicas change by reassignment alone, and
        not while it is being deleted.
        """
        context = self._services.context
        known = context.topics.get(topic)
        if known is not None and stored.topic_id not in (None, known.topic_id):
            log.warning("topic %s was created anew without its deletion", topic)
            self._deletion.abandon(topic)
            context.remove_topic(topic)
            known = None
        if known is None:
            merged = stored if stored.topic_id else replace(stored, topic_id=self._make_topic_id())
        elif topic in context.deleting:
            merged = known
        else:
            merged = replace(known, partitions={**stored.partitions, **known.partitions})
        changed_while_going = topic in context.deleting and merged != stored
        # tools older than topic ids write none
        to_mend = merged.topic_id != stored.topic_id or changed_while_going
        if to_mend and not await self._services.store.write_topic(topic, merged, version):
            return None  # changed or deleted meanwhile: the watch fires
        return None if topic in context.deleting else merged
