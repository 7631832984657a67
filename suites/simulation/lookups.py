"""Clients that look up offsets of partitions (ListOffsets), and their leaders (Metadata)."""

from __future__ import annotations

import asyncio
from uuid import UUID

from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import MetadataRequest, OffsetForLeaderEpochRequest
from urteil.suites.simulation.client import (
    CLIENT_TIMEOUT_MS,
    EARLIEST,
    LATEST,
    LOST,
    MAX_TIMESTAMP,
    Client,
)
from urteil.suites.simulation.cluster import BROKERS, EPOCH_MS
from urteil.suites.simulation.history import EpochEnd, View

BEGINS_S = 5.0
"""A reader that has no position for so long stands still."""


class EndAsker(Client):
    """Asks leaders for the ends of partitions, as readers of all and of committed records do."""

    async def run(self, topic: str, partitions: int, pause_s: float) -> None:
        while True:
            await asyncio.sleep(self.rng.uniform(0.5, 1.5) * pause_s)
            partition = self.rng.randrange(partitions)
            await self.ask_end(topic, partition, is_stable=self.rng.random() < 0.7)

    async def ask_end(self, topic: str, partition: int, *, is_stable: bool) -> bool:
        """Whether there was an answer without an error."""
        return await self.look_up(topic, partition, LATEST, is_stable=is_stable)

    async def look_up(
        self, topic: str, partition: int, timestamp: int, *, is_stable: bool = False
    ) -> bool:
        """Whether there was an answer without an error."""
        node = await self.leader(topic, partition)
        try:
            found = await self.list_offset(node, topic, partition, timestamp, is_stable=is_stable)
        except LOST:
            await self.forget_leader(topic, partition)
            return False
        if found.error_code != ErrorCode.NONE:
            await self.forget_leader(topic, partition)
            return False
        return True


class LookupClient(EndAsker):
    """Looks up the ends and starts of logs, and the records of timestamps."""

    async def run(self, topic: str, partitions: int, pause_s: float) -> None:
        while True:
            await asyncio.sleep(self.rng.uniform(0.5, 1.5) * pause_s)
            await self.look_up(topic, self.rng.randrange(partitions), self._draw_timestamp())

    def _draw_timestamp(self) -> int:
        past_ms = self.rng.randrange(max(1, round(self.now_s() * 1000)))
        return self.rng.choice((LATEST, LATEST, EARLIEST, MAX_TIMESTAMP, EPOCH_MS + past_ms))

    async def find_end(self, topic: str, partition: int) -> None:
        """Look up the end until the leader answers, for `BEGINS_S` at most, as a new reader with
        auto.offset.reset=latest does."""
        until_s = self.now_s() + BEGINS_S
        while not await self.look_up(topic, partition, LATEST) and self.now_s() < until_s:
            pass

    async def look_up_epochs(self, topic: str, partition: int) -> None:
        """Record the end of each leader epoch of a partition, as the leader answers it."""
        node = await self.leader(topic, partition)
        try:
            found = await self.list_offset(node, topic, partition, LATEST)
            for epoch in range(found.leader_epoch + 1):
                part = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                    partition=partition, leader_epoch=epoch
                )
                named = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic=topic, partitions=[part]
                )
                request = OffsetForLeaderEpochRequest(topics=[named])
                answer = await self.ask(node, request, 3, CLIENT_TIMEOUT_MS)
                result = answer.topics[0].partitions[0]
                if result.error_code == ErrorCode.NONE:
                    self.history.epoch_ends.append(
                        EpochEnd(node, topic, partition, epoch, result.end_offset, self.now_s())
                    )
        except LOST:
            return

    async def view(self, topic: str) -> None:
        """Record what each broker answers to Metadata about the topic."""
        requested_topic = MetadataRequest.MetadataRequestTopic(topic_id=UUID(int=0), name=topic)
        request = MetadataRequest(topics=[requested_topic], allow_auto_topic_creation=False)
        for broker in BROKERS:
            try:
                answer = await self.ask(broker, request, 9, CLIENT_TIMEOUT_MS)
            except LOST:
                continue
            self.history.views += [
                View(broker, topic, part.partition_index, part.leader_id, part.leader_epoch,
                     len(part.isr_nodes), self.now_s())
                for metadata in answer.topics
                for part in metadata.partitions
            ]  # fmt: skip
