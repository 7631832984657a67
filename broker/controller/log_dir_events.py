"""Log directories that failed: brokers report it in ZooKeeper, and by LeaderAndIsr for which
replicas (KIP-112). Source: `KafkaController.processLeaderAndIsrResponseReceived`."""

from __future__ import annotations

import logging
from typing import Any
from uuid import UUID

from urteil.broker.controller.admin_znodes import AdminZnodes
from urteil.broker.controller.services import Services
from urteil.broker.controller.statuses import TopicPartition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.zookeeper.session import Watch

log = logging.getLogger("controller")

News = dict[TopicPartition, bool]


class LogDirEvents:
    """Runs in the events of one term; `answered` is called between them."""

    def __init__(self, services: Services, nodes: AdminZnodes) -> None:
        self._services = services
        self._nodes = nodes
        self._news: dict[int, News] = {}  # by broker: whether each partition is offline there

    async def forget(self, watch: Watch) -> None:
        """A new controller tells every broker everything: what is reported need not be asked."""
        for path in await self._nodes.log_dir_events(watch):
            await self._nodes.forget(path)

    async def take_in_nodes(self, watch: Watch) -> None:
        """Ask those who reported a failure, by telling them again what they host."""
        events = await self._nodes.log_dir_events(watch)
        brokers = sorted(set(events.values()) & self._services.context.present)
        if brokers:
            log.warning("log directories failed on brokers %s", brokers)
        batch = self._services.batch()
        for tp in self._services.context.partitions_on(brokers):
            hosts = [one for one in brokers if one in self._services.context.replicas(tp)]
            batch.leader_and_isr(tp, hosts)
        self._services.send(batch)
        for path in events:
            await self._nodes.forget(path)

    def answered(self, broker: int, response: Any) -> bool:
        """Note which replicas a broker cannot reach; whether that is news to be settled."""
        context = self._services.context
        known = context.offline.get(broker, set())
        for tp, error in self._errors(response):
            is_offline = error is ErrorCode.KAFKA_STORAGE_ERROR
            if is_offline != (tp in known) and (is_offline or error is ErrorCode.NONE):
                self._news.setdefault(broker, {})[tp] = is_offline
        return broker in self._news

    def _errors(self, response: Any) -> list[tuple[TopicPartition, ErrorCode]]:
        names: dict[UUID, str] = self._services.context.names
        return [
            ((names[topic.topic_id], one.partition_index), ErrorCode(one.error_code))
            for topic in response.topics
            for one in topic.partition_errors
            if topic.topic_id in names
        ]

    def broker_left(self, broker: int) -> None:
        """What comes back under its id may have other directories."""
        self._news.pop(broker, None)
        self._services.context.offline.pop(broker, None)

    async def settle(self) -> None:
        """Elect leaders without the replicas that are out of reach, and take those out of ISRs."""
        context, news = self._services.context, self._news
        self._news = {}
        for broker, changes in news.items():
            lost = context.offline.setdefault(broker, set())
            lost.update(tp for tp, is_offline in changes.items() if is_offline)
            lost.difference_update(tp for tp, is_offline in changes.items() if not is_offline)
            log.warning("broker %d cannot reach %d replicas", broker, len(lost))
        affected = {tp for changes in news.values() for tp in changes}
        batch = self._services.batch()
        tps = [tp for tp in context.partitions() if tp in affected]
        await self._services.machine.settle(tps, batch)
        batch.update_metadata(tps)
        self._services.send(batch)
