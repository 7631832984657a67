"""A client: it finds leaders and coordinators, and sends requests to them."""

from __future__ import annotations

import asyncio
import random
from typing import Any
from uuid import UUID

from urteil.broker.net.channels import Channels, Endpoint
from urteil.broker.net.host_names import Resolver
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    CreateTopicsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
)
from urteil.suites.simulation.cluster import BROKERS, PORT, process
from urteil.suites.simulation.fetched_records import (
    FetchAnswer,
    batch_records,
    stored_batches,
    visible_batches,
)
from urteil.suites.simulation.history import Answer, History
from urteil.suites.simulation.loop import SimulatedLoop

CLIENT_TIMEOUT_MS = 3500
CONNECT_MS = 1000
"""The time for a connect. A SYN to a machine without power is never answered, nor sent again."""
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
"""The special timestamps of ListOffsets."""
LOOKUP_VERSION = 7
"""The first version of ListOffsets that looks up the largest timestamp."""
_QUERIES = {LATEST: "latest", EARLIEST: "earliest", MAX_TIMESTAMP: "max"}
LOST = (ConnectionError, TimeoutError, OSError)


class Client:
    """A process that knows the bootstrap addresses and asks for the rest."""

    def __init__(self, loop: SimulatedLoop, name: str, history: History, seed: int) -> None:
        self.name = name
        self.host = loop.network.host(loop.network.born(name))
        self._loop = loop
        self._channels = Channels(name, Resolver(), setup_timeout_ms=CONNECT_MS)
        self.history = history
        self.rng = random.Random(seed)
        self._leaders: dict[tuple[str, int], int] = {}

    async def ask(self, node: int, message: Any, version: int, timeout_ms: float) -> Any:
        """Raises ConnectionError, TimeoutError."""
        endpoint = Endpoint(node, process(node), PORT)
        return await self._channels.send(endpoint, message, version, timeout_ms)

    async def any_node(self, message: Any, version: int) -> Any:
        """Ask one broker after the other until one answers."""
        while True:
            node = self.rng.choice(BROKERS)
            try:
                return await self.ask(node, message, version, CLIENT_TIMEOUT_MS)
            except LOST:
                await self.back_off()

    def now_s(self) -> float:
        return self._loop.time()

    async def back_off(self) -> None:
        await asyncio.sleep(self.rng.uniform(0.05, 0.3))

    async def leader(self, topic: str, partition: int) -> int:
        """The leader as some broker knows it."""
        while (node := self._leaders.get((topic, partition), -1)) < 0:
            requested_topic = MetadataRequest.MetadataRequestTopic(topic_id=UUID(int=0), name=topic)
            answer = await self.any_node(
                MetadataRequest(topics=[requested_topic], allow_auto_topic_creation=False), 9
            )
            for topic_metadata in answer.topics:
                for partition_metadata in topic_metadata.partitions:
                    self._leaders[topic, partition_metadata.partition_index] = (
                        partition_metadata.leader_id
                    )
            if self._leaders.get((topic, partition), -1) < 0:
                await self.back_off()
        return node

    def forget_leaders(self) -> None:
        """Look up all leaders again: a former leader answers fetches of version 11 as a follower
        (KIP-392)."""
        self._leaders.clear()

    async def forget_leader(self, topic: str, partition: int) -> None:
        self._leaders.pop((topic, partition), None)
        await self.back_off()

    async def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        """Until it is there."""
        new_topic = CreateTopicsRequest.CreatableTopic(
            name=topic, num_partitions=partitions, replication_factor=3, assignments=[],
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                for name, value in configs.items()
            ],
        )  # fmt: skip
        while True:
            answer = await self.any_node(MetadataRequest(topics=[]), 9)
            try:
                made = await self.ask(
                    answer.controller_id, CreateTopicsRequest(topics=[new_topic]), 4, 10_000
                )
            except LOST:
                continue
            if made.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                return
            await self.back_off()

    async def list_offset(
        self, node: int, topic: str, partition: int, timestamp: int, *, is_stable: bool = False
    ) -> Any:
        """The answer for a partition, which is recorded. Raises ConnectionError, TimeoutError."""
        part = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=-1, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(is_stable),
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[part])],
        )
        began_s = self._loop.time()
        answer = await self.ask(node, request, LOOKUP_VERSION, CLIENT_TIMEOUT_MS)
        found = answer.topics[0].partitions[0]
        has_time = timestamp == MAX_TIMESTAMP or timestamp >= 0
        self.history.answers.append(
            Answer(
                self.name, topic, partition,
                "stable" if is_stable else _QUERIES.get(timestamp, "time"),
                found.offset, node, began_s, self._loop.time(), found.leader_epoch,
                ErrorCode(found.error_code).name if found.error_code else None,
                timestamp if timestamp >= 0 else None,
                found.timestamp if has_time and found.timestamp >= 0 else None,
            )
        )  # fmt: skip
        return found

    async def earliest(self, topic: str, partition: int) -> int:
        """Where the log starts: until the leader answers. Raises ConnectionError, TimeoutError."""
        while True:
            node = await self.leader(topic, partition)
            answer = await self.list_offset(node, topic, partition, EARLIEST)
            if answer.error_code == ErrorCode.NONE:
                return int(answer.offset)
            await self.forget_leader(topic, partition)

    async def fetch(
        self, node: int, topic: str, partition: int, offset: int, wait_ms: int, *,
        is_committed: bool = False,
    ) -> FetchAnswer:  # fmt: skip
        part = FetchRequest.FetchPartition(
            partition=partition, fetch_offset=offset, partition_max_bytes=1 << 16
        )
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            isolation_level=int(is_committed),
            topics=[FetchRequest.FetchTopic(topic=topic, partitions=[part])],
        )
        answer = await self.ask(node, request, 11, wait_ms + CLIENT_TIMEOUT_MS)
        data = answer.responses[0].partitions[0]
        aborted = [(each.first_offset, each.producer_id)
                   for each in data.aborted_transactions or ()]  # fmt: skip
        batches = visible_batches(data.records, aborted)
        records = [record for batch in batches for record in batch_records(*batch, offset)]
        return FetchAnswer(
            data.error_code,
            data.last_stable_offset if is_committed else data.high_watermark,
            records,
            max([offset, *(header.next_offset for header, _ in stored_batches(data.records))]),
        )


class CoordinatedClient(Client):
    """A client with a coordinator: that of the group or the transactional id `key`."""

    def __init__(self, *given: Any, key: str, key_type: int) -> None:
        super().__init__(*given)
        self._find = FindCoordinatorRequest(key=key, key_type=key_type)
        self._coordinator: int | None = None

    async def find_coordinator(self) -> int:
        while self._coordinator is None:
            answer = await self.any_node(self._find, 2)
            if answer.error_code == ErrorCode.NONE:
                self._coordinator = answer.node_id
            else:
                await self.back_off()
        return self._coordinator

    def forget_coordinator(self) -> None:
        self._coordinator = None

    def forget_coordinator_after(self, code: int) -> None:
        if code in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            self._coordinator = None
