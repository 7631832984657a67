"""Failed log directories (KIP-112): elections without the replicas that a broker cannot access.

A broker reports a failure in ZooKeeper. The controller then sends LeaderAndIsr for all its
replicas, and the response names the offline ones.
Source: `KafkaController.processLeaderAndIsrResponseReceived`.
"""

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

Changes = dict[TopicPartition, bool]


class LogDirEvents:
    """Called by the event handlers of one term; `handle_response` is called between events."""

    def __init__(self, services: Services, znodes: AdminZnodes) -> None:
        self._services = services
        self._znodes = znodes
        self._changes: dict[int, Changes] = {}  # by broker: whether each partition is offline there

    async def discard(self, watch: Watch) -> None:
        """Delete all reports: a new controller sends LeaderAndIsr to every broker anyway."""
        for path in await self._znodes.log_dir_events(watch):
            await self._znodes.delete(path)

    async def process_znodes(self, watch: Watch) -> None:
        """Send LeaderAndIsr for all replicas of the brokers that reported a failure."""
        events = await self._znodes.log_dir_events(watch)
        brokers = sorted(set(events.values()) & self._services.context.present)
        if brokers:
            log.warning("log directories failed on brokers %s", brokers)
        batch = self._services.batch()
        for tp in self._services.context.partitions_on(brokers):
            hosts = [broker for broker in brokers if broker in self._services.context.replicas(tp)]
            batch.leader_and_isr(tp, hosts)
        self._services.send(batch)
        for path in events:
            await self._znodes.delete(path)

    def handle_response(self, broker: int, response: Any) -> bool:
        """Note the replicas that a broker cannot access; True if `settle` has work to do."""
        context = self._services.context
        known = context.offline.get(broker, set())
        for tp, error in self._errors(response):
            is_offline = error is ErrorCode.KAFKA_STORAGE_ERROR
            if is_offline != (tp in known) and (is_offline or error is ErrorCode.NONE):
                self._changes.setdefault(broker, {})[tp] = is_offline
        return broker in self._changes

    def _errors(self, response: Any) -> list[tuple[TopicPartition, ErrorCode]]:
        names: dict[UUID, str] = self._services.context.names
        return [
            (
                (names[topic.topic_id], partition_error.partition_index),
                ErrorCode(partition_error.error_code),
            )
            for topic in response.topics
            for partition_error in topic.partition_errors
            if topic.topic_id in names
        ]

    def broker_left(self, broker: int) -> None:
        """Discard its reports: after a restart it may have other directories."""
        self._changes.pop(broker, None)
        self._services.context.offline.pop(broker, None)

    async def settle(self) -> None:
        """Elect leaders without the offline replicas, and remove those from the ISRs."""
        context, changes_by_broker = self._services.context, self._changes
        self._changes = {}
        for broker, changes in changes_by_broker.items():
            lost = context.offline.setdefault(broker, set())
            lost.update(tp for tp, is_offline in changes.items() if is_offline)
            lost.difference_update(tp for tp, is_offline in changes.items() if not is_offline)
            log.warning("broker %d cannot access %d replicas", broker, len(lost))
        affected = {tp for changes in changes_by_broker.values() for tp in changes}
        batch = self._services.batch()
        tps = [tp for tp in context.partitions() if tp in affected]
        await self._services.machine.settle(tps, batch)
        batch.update_metadata(tps)
        self._services.send(batch)
