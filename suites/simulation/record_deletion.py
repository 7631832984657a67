"""A client that deletes the older half of a partition's records, and fetches a deleted record."""

from __future__ import annotations

import asyncio

from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import DeleteRecordsRequest, FetchRequest
from urteil.suites.simulation.client import CLIENT_TIMEOUT_MS, EARLIEST, LATEST, LOST, Client
from urteil.suites.simulation.history import Answer, Deletion

REQUEST_MS = 3000


class RecordDeleter(Client):
    """Sends one DeleteRecords after another for one partition."""

    async def run(self, topic: str, partition: int, until_s: float, pause_s: float) -> None:
        while self.now_s() < until_s:
            await asyncio.sleep(self.rng.uniform(0.5, 1.5) * pause_s)
            try:
                await self._delete_half(topic, partition)
            except LOST:
                await self.forget_leader(topic, partition)

    async def _delete_half(self, topic: str, partition: int) -> None:
        """Raises ConnectionError, TimeoutError."""
        node = await self.leader(topic, partition)
        start = await self.list_offset(node, topic, partition, EARLIEST)
        end = await self.list_offset(node, topic, partition, LATEST)
        if start.error_code or end.error_code or end.offset - start.offset < 2:
            await self.forget_leader(topic, partition)
            return
        offset = (start.offset + end.offset) // 2
        part = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[part])],
            timeout_ms=REQUEST_MS,
        )
        began_s = self.now_s()
        self.history.deleted_places.add((topic, partition))
        answer = await self.ask(node, request, 1, CLIENT_TIMEOUT_MS)
        result = answer.topics[0].partitions[0]
        if result.error_code:
            await self.forget_leader(topic, partition)
            return
        self.history.deletions.append(
            Deletion(topic, partition, result.low_watermark, began_s, self.now_s())
        )
        await self._fetch_deleted(node, topic, partition)

    async def _fetch_deleted(self, node: int, topic: str, partition: int) -> None:
        """Fetch the record before the start that the leader returns, in the epoch of that answer.
        Raises ConnectionError, TimeoutError."""
        start = await self.list_offset(node, topic, partition, EARLIEST)
        if start.error_code or start.offset < 1:
            return
        part = FetchRequest.FetchPartition(
            partition=partition, current_leader_epoch=start.leader_epoch,
            fetch_offset=start.offset - 1, partition_max_bytes=1 << 16,
        )  # fmt: skip
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0,
            topics=[FetchRequest.FetchTopic(topic=topic, partitions=[part])],
        )  # fmt: skip
        began_s = self.now_s()
        answer = await self.ask(node, request, 11, CLIENT_TIMEOUT_MS)
        code = answer.responses[0].partitions[0].error_code
        self.history.answers.append(
            Answer(self.name, topic, partition, "before", start.offset - 1, node, began_s,
                   self.now_s(), start.leader_epoch, ErrorCode(code).name if code else None)
        )  # fmt: skip
