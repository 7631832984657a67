"""Producers that repeat a batch until it is answered, or give it up."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from dataclasses import replace
from typing import Any

from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import InitProducerIdRequest, ProduceRequest
from urteil.suites.simulation.client import CLIENT_TIMEOUT_MS, LOST, Client
from urteil.suites.simulation.history import RejectedRepetition, Send, sent_ms

IN_FLIGHT = 5
"""Batches of a partition that an idempotent producer has under way: as many as a broker knows."""
REPEATED = 0.06
"""The probability of a repetition after each batch."""
LONGER = 0.3
"""The probability that a repetition has further records."""
REQUEST_MS = 2500
ACKED = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
REFUSED = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""Nothing was appended, for certain."""
KEYS = 3
"""Of each producer in a partition: its own, so that plain ones leave no fate of others open."""


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
        self.history.producer_ends_s[self.name] = self._loop.time()

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
                await self._follow_up(partition, under_way)

    async def _follow_up(self, partition: int, under_way: deque[asyncio.Task[None]]) -> None:
        """Called after each batch. `under_way` are the batches without an outcome."""

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
            if send.outcome == "ok":
                self._keep(send, batch)
            if not self._idempotent or send.outcome == "ok":
                return
            if send.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name:
                if send.out_of_order_s < 0:
                    send.out_of_order_s = send.end_s
                if is_oldest:
                    return
            await self.forget_leader(send.topic, send.partition)

    def _keep(self, send: Send, batch: bytes) -> None:
        """Called with each acknowledged batch."""

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
        send.rejected_by = node
        self._leaders.pop((send.topic, send.partition), None)
        return "fail" if code in REFUSED else "info"


class Repeater(Producer):
    """An idempotent producer that also sends batches again: one of the five newest acknowledged
    ones, which brokers know, as it was, or with further records behind its own.

    A repetition as it was is answered with its offset. One that is longer is rejected.
    """

    def __init__(self, *given: Any, idempotent: bool) -> None:
        super().__init__(*given, idempotent=idempotent)
        self._acked: dict[int, list[tuple[Send, bytes]]] = defaultdict(list)

    def _keep(self, send: Send, batch: bytes) -> None:
        self._acked[send.partition].append((send, batch))

    async def _follow_up(self, partition: int, under_way: deque[asyncio.Task[None]]) -> None:
        if self.rng.random() > REPEATED:
            return
        await asyncio.wait(under_way)
        await asyncio.sleep(self.rng.uniform(0.0, 2.0))
        newest = sorted(self._acked[partition], key=lambda each: each[0].sequence)[-IN_FLIGHT:]
        if not newest or any(task.exception() for task in under_way):
            return
        send, batch = self.rng.choice(newest)
        if self.rng.random() < LONGER:
            await self._send_longer(send)
            return
        begun = sum(
            each.sequence > send.sequence
            for each in self.history.sends
            if (each.client, each.topic, each.partition) == (self.name, send.topic, partition)
        )
        repetition = replace(send, begin_s=self._loop.time(), error="")
        outcome = await self._attempt(repetition, batch)
        if outcome == "ok" and repetition.offset >= 0:
            send.offset = repetition.offset
        elif begun < IN_FLIGHT and repetition.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name:
            self.history.rejected_repetitions.append(
                RejectedRepetition(
                    send, repetition.rejected_by, repetition.begin_s, self._loop.time()
                )
            )

    async def _send_longer(self, acked: Send) -> None:
        """A batch that begins with the sequence of an acknowledged one and has one record more."""
        send = self._begin(acked.topic, acked.partition, acked.sequence)
        self._next += len(acked.values)
        more = tuple(f"{self.name}-{self._next - n}" for n in range(1, 1 + len(acked.values)))
        send.values += more
        batch = build_batch(
            self._records(send, ""),
            producer_id=send.producer_id,
            producer_epoch=self._epoch,
            base_sequence=send.sequence,
        )
        send.attempts = 1
        send.outcome = await self._attempt(send, batch)
        send.end_s = self._loop.time()


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
