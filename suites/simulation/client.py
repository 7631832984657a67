"""Clients: producers that retry or give up, readers that follow; every call becomes history."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from urteil.broker.net.channels import Channels, Endpoint
from urteil.broker.net.host_names import Resolver
from urteil.broker.wire.batches import BatchHeader, build_batch, iter_batches, iter_records
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    CreateTopicsRequest,
    FetchRequest,
    InitProducerIdRequest,
    MetadataRequest,
    ProduceRequest,
)
from urteil.suites.simulation.cluster import BROKERS, EPOCH_MS, PORT, process
from urteil.suites.simulation.loop import SimulatedLoop

IN_FLIGHT = 5
"""Batches of a partition that an idempotent producer has under way: as many as a broker knows."""
REQUEST_MS = 2500
CLIENT_TIMEOUT_MS = 3500
LOST = (ConnectionError, TimeoutError, OSError)
ACKED = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
REFUSED = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""Nothing was appended, for certain."""


@dataclass(slots=True)
class Send:
    """One batch and what came of it: `ok`, `fail` (certainly not), `info` (unknown)."""

    client: str
    topic: str
    partition: int
    values: tuple[str, ...]
    begin_s: float
    end_s: float = -1.0
    outcome: str = "info"
    offset: int = -1
    node: int = -1
    producer_id: int = -1
    sequence: int = -1
    error: str = ""
    attempts: int = 0
    session: int = 0
    txn: int | None = None


@dataclass(slots=True)
class Txn:
    """One transaction: `committed`, `aborted`, `fenced` before its commit, or `unknown`."""

    client: str
    session: int
    number: int
    transactional_id: str
    producer_id: int
    epoch: int
    begin_s: float
    init_invoke_s: float
    init_s: float
    commit_s: float = -1.0
    end_s: float = -1.0
    outcome: str = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """Where a partition ends: `latest` for readers of all records, `stable` for those of committed
    ones."""

    client: str
    topic: str
    partition: int
    query: str
    offset: int
    node: int
    invoke_s: float
    complete_s: float


@dataclass(frozen=True, slots=True)
class Read:
    """One record as a reader got it."""

    client: str
    topic: str
    partition: int
    offset: int
    value: str
    leader_epoch: int
    at_s: float


@dataclass(slots=True)
class History:
    """What the clients saw."""

    sends: list[Send] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    resets: list[tuple[str, str, int, int]] = field(default_factory=list)
    txns: list[Txn] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    readers_of_committed: list[str] = field(default_factory=list)


class Client:
    """A process that knows the bootstrap addresses and asks for the rest."""

    def __init__(self, loop: SimulatedLoop, name: str, history: History, seed: int) -> None:
        self.name = name
        self.host = loop.network.host(loop.network.born(name))
        self._loop = loop
        self._channels = Channels(name, Resolver())
        self._history = history
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

    async def forget_leader(self, topic: str, partition: int) -> None:
        self._leaders.pop((topic, partition), None)
        await self.back_off()

    async def create_topic(self, topic: str, partitions: int) -> None:
        """Until it is there."""
        new_topic = CreateTopicsRequest.CreatableTopic(
            name=topic, num_partitions=partitions, replication_factor=3, assignments=[], configs=[]
        )
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

    async def fetch(
        self, node: int, topic: str, partition: int, offset: int, wait_ms: int, *,
        is_committed: bool = False,
    ) -> Fetched:  # fmt: skip
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
        return Fetched(
            data.error_code,
            data.last_stable_offset if is_committed else data.high_watermark,
            records,
            max([offset, *(header.next_offset for header, _ in stored_batches(data.records))]),
        )


class Fetched(NamedTuple):
    """An answer: `end` is the high watermark or the last stable offset, `records` are (offset,
    value, leader epoch), `next_offset` is the offset behind all batches."""

    error: int
    end: int
    records: list[tuple[int, str, int]]
    next_offset: int


def stored_batches(data: Any) -> list[tuple[BatchHeader, Any]]:
    if data is None:
        return []
    frames = b"".join(data) if isinstance(data, list) else data
    return list(iter_batches(frames, allow_partial_tail=True))


def visible_batches(data: Any, aborted: list[tuple[int, int]]) -> Iterator[tuple[BatchHeader, Any]]:
    """What a consumer passes on: no markers, and nothing of the aborted transactions, each given as
    its first offset and its producer."""
    ahead, open_ids = sorted(aborted, reverse=True), set()
    for header, batch in stored_batches(data):
        while ahead and ahead[-1][0] <= header.last_offset:
            open_ids.add(ahead.pop()[1])
        if header.is_control:
            open_ids.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in open_ids):
            yield header, batch


def batch_records(header: BatchHeader, batch: Any, start: int = 0) -> Iterator[
    tuple[int, str, int]
]:  # fmt: skip
    """(offset, value, leader epoch) of every record of a batch from `start` on."""
    for record in iter_records(batch):
        if record.offset >= start:
            value = (record.value or b"").decode().split(" ")[0]
            yield record.offset, value, header.partition_leader_epoch


def records_of(data: Any) -> Iterator[tuple[int, str, int]]:
    """(offset, value, leader epoch) of every record but markers."""
    for header, batch in visible_batches(data, []):
        yield from batch_records(header, batch)


class Producer(Client):
    """acks=all. An idempotent producer repeats a batch until it is answered; a plain one stops."""

    def __init__(self, *given: Any, idempotent: bool) -> None:
        super().__init__(*given)
        self._idempotent = idempotent
        self._next = 0
        self._producer_id = self._epoch = -1

    async def run(self, topic: str, partitions: int, sends: int, pause_s: float) -> None:
        """Returns when every batch has an outcome. The first one goes alone: brokers that know
        nothing of a producer take any sequence for its first (KAFKA-14359)."""
        if self._idempotent:
            await self._introduce()
        share = [sends // partitions + (n < sends % partitions) for n in range(partitions)]
        await asyncio.gather(
            *(self._run(topic, n, share[n], pause_s * partitions) for n in range(partitions))
        )

    async def _introduce(self) -> None:
        while True:
            answer = await self.any_node(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0), 1
            )
            if answer.error_code == ErrorCode.NONE:
                self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
                return
            await self.back_off()

    async def _run(self, topic: str, partition: int, sends: int, pause_s: float) -> None:
        sequence, room, under_way = 0, 1, deque[asyncio.Task[None]]()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(sends):
                await asyncio.sleep(self.rng.expovariate(1 / pause_s))
                if len(under_way) == room:
                    await under_way.popleft()
                    room = IN_FLIGHT if self._idempotent else 1
                send = self._begin(topic, partition, sequence)
                sequence += len(send.values)
                settling = self._settle(send, tuple(under_way))
                under_way.append(tasks.create_task(settling))

    def _begin(self, topic: str, partition: int, sequence: int) -> Send:
        count = self.rng.choice((1, 1, 2, 3))
        values = tuple(f"{self.name}-{self._next + n}" for n in range(count))
        self._next += count
        send = Send(self.name, topic, partition, values, self._loop.time())
        if self._idempotent:
            send.producer_id, send.sequence = self._producer_id, sequence
        self._history.sends.append(send)
        return send

    async def _settle(self, send: Send, earlier: tuple[asyncio.Task[None], ...] = ()) -> None:
        """Its outcome. Out of order with nothing `earlier` open is as much as a client can learn: a
        broker that restarted may know no more than its producers' last batches."""
        padding = "x" * self.rng.randrange(20, 200)
        now_ms = EPOCH_MS + int(self._loop.time() * 1000)
        batch = build_batch(
            [(None, f"{value} {padding}".encode(), (), now_ms) for value in send.values],
            producer_id=send.producer_id,
            producer_epoch=self._epoch,
            base_sequence=send.sequence,
        )
        while True:
            send.attempts += 1
            is_oldest = all(task.done() for task in earlier)
            send.outcome = await self._attempt(send, batch)
            send.end_s = self._loop.time()
            if not self._idempotent or send.outcome == "ok":
                return
            if is_oldest and send.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name:
                return
            await self.forget_leader(send.topic, send.partition)

    async def _attempt(self, send: Send, batch: bytes) -> str:
        part = ProduceRequest.PartitionProduceData(index=send.partition, records=batch)
        request = ProduceRequest(
            acks=-1,
            timeout_ms=REQUEST_MS,
            topic_data=[ProduceRequest.TopicProduceData(name=send.topic, partition_data=[part])],
        )
        node = await self.leader(send.topic, send.partition)
        try:
            answer = await self.ask(node, request, 8, CLIENT_TIMEOUT_MS)
        except LOST as error:
            send.error = type(error).__name__
            self._leaders.pop((send.topic, send.partition), None)
            return "info"
        part_response = answer.responses[0].partition_responses[0]
        code = ErrorCode(part_response.error_code)
        send.error = "" if code in ACKED else code.name
        if code in ACKED:
            send.offset, send.node = part_response.base_offset, node
            return "ok"
        self._leaders.pop((send.topic, send.partition), None)
        return "fail" if code in REFUSED else "info"


class Reader(Client):
    """Follows one partition for as long as it is let, and reads it whole in the end."""

    is_committed = False

    @property
    def reads(self) -> list[Read]:
        return self._history.reads

    async def follow(self, topic: str, partition: int) -> None:
        position = 0
        while True:
            try:
                position = await self._poll(topic, partition, position)
            except LOST:
                await self.forget_leader(topic, partition)

    async def _poll(self, topic: str, partition: int, position: int) -> int:
        node = await self.leader(topic, partition)
        fetched = await self.fetch(
            node, topic, partition, position, 500, is_committed=self.is_committed
        )
        if fetched.error == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._history.resets.append((self.name, topic, partition, position))
            return max(0, fetched.end)
        if fetched.error:
            await self.forget_leader(topic, partition)
            return position
        self._keep(topic, partition, fetched.records)
        return fetched.next_offset

    def _keep(self, topic: str, partition: int, records: list[tuple[int, str, int]]) -> None:
        now = self._loop.time()
        self._history.reads += [
            Read(self.name, topic, partition, offset, value, epoch, now)
            for offset, value, epoch in records
        ]

    async def sweep(self, topic: str, partition: int) -> tuple[int, int]:
        """Everything from offset 0 to the end: where it ended, and the end."""
        position, end = 0, 1
        while position < end:
            node = await self.leader(topic, partition)
            try:
                fetched = await self.fetch(
                    node, topic, partition, position, 0, is_committed=self.is_committed
                )
            except LOST:
                fetched = Fetched(ErrorCode.UNKNOWN_SERVER_ERROR, 0, [], position)
            if fetched.error:
                end = position + 1
                await self.forget_leader(topic, partition)
                continue
            end = fetched.end
            if fetched.next_offset == position:
                break
            self._keep(topic, partition, fetched.records)
            position = fetched.next_offset
        return position, end


class CommittedReader(Reader):
    """Reads under read_committed."""

    is_committed = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._history.readers_of_committed.append(self.name)
