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
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
)
from urteil.suites.simulation.cluster import BROKERS, EPOCH_MS, PORT, process
from urteil.suites.simulation.loop import SimulatedLoop

IN_FLIGHT = 5
"""Batches of a partition that an idempotent producer has under way: as many as a broker knows."""
REQUEST_MS = 2500
CLIENT_TIMEOUT_MS = 3500
EARLIEST, LATEST = -2, -1
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
    keys: tuple[str, ...] = ()
    """Of each record; none in topics that are not compacted."""
    tombstones: frozenset[str] = frozenset()
    """The values that are headers of records without a value."""


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


class Assignment(NamedTuple):
    """A partition that a member got (`assigned`), or that the leader gave a member (`given`)."""

    client: str
    generation: int
    member_id: str
    event: str
    topic: str
    partition: int
    at_s: float


class Commit(NamedTuple):
    """A commit of one partition and what came of it."""

    client: str
    generation: int
    member_id: str
    topic: str
    partition: int
    offset: int
    invoke_s: float
    complete_s: float
    outcome: str
    error: str | None


class CommitRead(NamedTuple):
    """A committed offset as a broker answered it; -1 for none."""

    client: str
    topic: str
    partition: int
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
    key: str | None = None
    timestamp_ms: int | None = None


@dataclass(slots=True)
class History:
    """What the clients saw."""

    sends: list[Send] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    txns: list[Txn] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    readers_of_committed: list[str] = field(default_factory=list)
    instances: dict[str, str] = field(default_factory=dict)
    """Client to its `group.instance.id`."""
    assignments: list[Assignment] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    commit_reads: list[CommitRead] = field(default_factory=list)


class Client:
    """A process that knows the bootstrap addresses and asks for the rest."""

    def __init__(self, loop: SimulatedLoop, name: str, history: History, seed: int) -> None:
        self.name = name
        self.host = loop.network.host(loop.network.born(name))
        self._loop = loop
        self._channels = Channels(name, Resolver())
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
        """The answer for a partition. Raises ConnectionError, TimeoutError."""
        part = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=-1, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(is_stable),
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[part])],
        )
        answer = await self.ask(node, request, 4, CLIENT_TIMEOUT_MS)
        return answer.topics[0].partitions[0]

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


class Fetched(NamedTuple):
    """A record as a broker returned it."""

    offset: int
    value: str
    leader_epoch: int
    key: str | None
    timestamp_ms: int


class FetchAnswer(NamedTuple):
    """An answer: `end` is the high watermark or the last stable offset, `next_offset` is the offset
    behind all batches."""

    error: int
    end: int
    records: list[Fetched]
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


def batch_records(header: BatchHeader, batch: Any, start: int = 0) -> Iterator[Fetched]:
    """Every record of a batch from `start` on."""
    for record in iter_records(batch):
        if record.offset >= start:
            key = None if record.key is None else bytes(record.key).decode()
            yield Fetched(
                record.offset, value_id(record), header.partition_leader_epoch, key,
                record.timestamp_ms,
            )  # fmt: skip


def value_id(record: Any) -> str:
    """The first word of the value, or of a tombstone's header."""
    text = record.headers[0][1] if record.value is None and record.headers else record.value
    return (text or b"").decode().split(" ")[0]


class Sweep(NamedTuple):
    """Where a pass over a partition began and ended, and the partition's end then."""

    begin: int
    position: int
    end: int


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
        self.history.sends.append(send)
        return send

    async def _settle(self, send: Send, earlier: tuple[asyncio.Task[None], ...] = ()) -> None:
        """Its outcome. Out of order with nothing `earlier` open is as much as a client can learn: a
        broker that restarted may know no more than its producers' last batches."""
        padding = "x" * self.rng.randrange(20, 200)
        batch = build_batch(
            self._records(send, padding),
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

    def _records(self, send: Send, padding: str) -> list[Any]:
        """Key, value, headers and timestamp of each."""
        at_ms = sent_ms(send)
        return [(None, f"{value} {padding}".encode(), (), at_ms) for value in send.values]

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


def sent_ms(send: Send) -> int:
    """The timestamp of its records."""
    return EPOCH_MS + int(send.begin_s * 1000)


KEYS = 3
"""Of each producer in a partition: its own, so that plain ones leave no fate of others open."""


class KeyedProducer(Producer):
    """Writes values and tombstones of a few keys."""

    def _begin(self, topic: str, partition: int, sequence: int) -> Send:
        send = super()._begin(topic, partition, sequence)
        send.keys = tuple(f"{self.name}.{self.rng.randrange(KEYS)}" for _ in send.values)
        send.tombstones = frozenset(value for value in send.values if self.rng.random() < 0.15)
        return send

    def _records(self, send: Send, padding: str) -> list[Any]:
        at_ms = sent_ms(send)
        return [
            (key.encode(), None, (("id", value.encode()),), at_ms)
            if value in send.tombstones
            else (key.encode(), f"{value} {padding}".encode(), (), at_ms)
            for key, value in zip(send.keys, send.values, strict=True)
        ]


class Reader(Client):
    """Follows one partition for as long as it is let, and reads it whole in the end."""

    is_committed = False

    @property
    def reads(self) -> list[Read]:
        return self.history.reads

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
            return await self.earliest(topic, partition)
        if fetched.error:
            await self.forget_leader(topic, partition)
            return position
        self._keep(topic, partition, fetched.records)
        return fetched.next_offset

    def _keep(self, topic: str, partition: int, records: list[Fetched]) -> None:
        now = self._loop.time()
        self.history.reads += [
            Read(self.name, topic, partition, offset, value, epoch, now, key, timestamp_ms)
            for offset, value, epoch, key, timestamp_ms in records
        ]

    async def sweep(self, topic: str, partition: int) -> Sweep:
        """Everything from the start of the log to its end."""
        begin = position = 0
        end = 1
        while position < end:
            try:
                node = await self.leader(topic, partition)
                fetched = await self.fetch(
                    node, topic, partition, position, 0, is_committed=self.is_committed
                )
                if fetched.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                    begin = position = await self.earliest(topic, partition)
                    end = position + 1
                    continue
            except LOST:
                fetched = FetchAnswer(ErrorCode.UNKNOWN_SERVER_ERROR, 0, [], position)
            if fetched.error:
                end = position + 1
                await self.forget_leader(topic, partition)
                continue
            end = fetched.end
            if fetched.next_offset == position:
                break
            self._keep(topic, partition, fetched.records)
            position = fetched.next_offset
        return Sweep(begin, position, end)


class CommittedReader(Reader):
    """Reads under read_committed."""

    is_committed = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.history.readers_of_committed.append(self.name)
