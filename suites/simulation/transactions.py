"""Clients of transactions: writers that commit, abort, stall and replace each other, and a client
that asks where partitions end."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from urteil.suites.simulation.client import CLIENT_TIMEOUT_MS, LOST, CoordinatedClient
from urteil.suites.simulation.cluster import EPOCH_MS
from urteil.suites.simulation.history import Send, Txn
from urteil.suites.simulation.producers import ACKED, KEYS, REQUEST_MS

TIMEOUT_MS = 6_000
CLEANUP_MS = 1_000
TRANSACTION_KEY = 1
AGAIN = (
    *(ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
    *(ErrorCode.NOT_COORDINATOR, ErrorCode.CONCURRENT_TRANSACTIONS),
    *(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.REQUEST_TIMED_OUT),
    ErrorCode.NOT_ENOUGH_REPLICAS,
)
"""The coordinator does not answer the question yet."""
SETTLED = (
    *(ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE),
    *(ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    *(ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
)
"""Sending the batch again changes nothing."""
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)


class Refused(Exception):
    """A request of a transaction was answered with an error that ends the transaction."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code


class Writer(CoordinatedClient):
    """Transactions one after another. After an error the producer is initialised again."""

    is_keyed = False
    """Whether its records have one of a few keys of its own."""

    def __init__(self, *given: Any, transactional_id: str) -> None:
        super().__init__(*given, key=transactional_id, key_type=TRANSACTION_KEY)
        self._id = transactional_id
        self._producer = (-1, -1)
        self._init_s = (-1.0, -1.0)
        self._session = self._number = self._next = 0
        self._sequences: dict[int, int] = {}

    async def run(self, topic: str, partitions: int, transactions: int, pause_s: float) -> None:
        for _ in range(transactions):
            await asyncio.sleep(self.rng.expovariate(1 / pause_s))
            if self._producer[0] < 0:
                await self._initialise()
            await self._transaction(topic, partitions)

    async def _initialise(self) -> None:
        began_s = self._loop.time()
        request = InitProducerIdRequest(
            transactional_id=self._id, transaction_timeout_ms=TIMEOUT_MS
        )
        while True:
            answer = await self._ask_coordinator(request, 1)
            if answer.error_code == ErrorCode.NONE:
                break
            await self.back_off()
        self._producer = answer.producer_id, answer.producer_epoch
        self._init_s = began_s, self._loop.time()
        self._session += 1
        self._sequences.clear()

    async def _transaction(self, topic: str, partitions: int) -> None:
        self._number += 1
        txn = Txn(
            self.name, self._session, self._number, self._id, *self._producer,
            self._loop.time(), *self._init_s,
        )  # fmt: skip
        self.history.txns.append(txn)
        try:
            await self._write(txn, topic, partitions)
            await self._end(txn, commits=self.rng.random() < 0.7)
        except Refused as refused:
            await self._give_up(txn, refused)
        txn.end_s = self._loop.time()

    async def _write(self, txn: Txn, topic: str, partitions: int) -> None:
        chosen = self.rng.sample(range(partitions), self.rng.randint(1, partitions))
        await self._add(topic, chosen)
        for partition in [*chosen, *self.rng.choices(chosen, k=self.rng.randint(0, 2))]:
            await asyncio.sleep(self.rng.choice((0.0, 0.02, 0.3)))
            await self._send(txn, topic, partition)
        if self.rng.random() < 0.1:
            await asyncio.sleep(self.rng.choice((0.5, 1.5)) * TIMEOUT_MS / 1000)

    async def _add(self, topic: str, partitions: list[int]) -> None:
        topics = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            name=topic, partitions=sorted(partitions)
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=[topics],
        )
        while True:
            answer = await self._ask_coordinator(request, 2)
            results = answer.results_by_topic_v3_and_below[0].results_by_partition
            codes = {ErrorCode(result.partition_error_code) for result in results}
            if codes == {ErrorCode.NONE}:
                return
            await self._again_or_refused((codes - {ErrorCode.NONE}).pop())

    async def _end(self, txn: Txn, *, commits: bool) -> None:
        if commits:
            txn.commit_s = self._loop.time()
        request = EndTxnRequest(
            transactional_id=self._id, producer_id=self._producer[0],
            producer_epoch=self._producer[1], committed=commits,
        )  # fmt: skip
        while True:
            code = ErrorCode((await self._ask_coordinator(request, 2)).error_code)
            if code == ErrorCode.NONE:
                txn.outcome = "committed" if commits else "aborted"
                return
            await self._again_or_refused(code)

    async def _give_up(self, txn: Txn, refused: Refused) -> None:
        """Abort, unless another producer has taken over."""
        if txn.commit_s < 0:
            if refused.code in FENCED:
                txn.outcome = "fenced"
            else:
                with contextlib.suppress(Refused):
                    await self._end(txn, commits=False)
        self._producer = (-1, -1)

    async def _again_or_refused(self, code: ErrorCode) -> None:
        if code not in AGAIN:
            raise Refused(code)
        self.forget_coordinator_after(code)
        await self.back_off()

    async def _ask_coordinator(self, message: Any, version: int) -> Any:
        """Until there is an answer."""
        while True:
            node = await self.find_coordinator()
            try:
                answer = await self.ask(node, message, version, CLIENT_TIMEOUT_MS)
            except LOST:
                self.forget_coordinator()
                await self.back_off()
                continue
            self.forget_coordinator_after(getattr(answer, "error_code", 0))
            return answer

    async def _send(self, txn: Txn, topic: str, partition: int) -> None:
        """One batch, again and again until the answer settles it. Raises Refused."""
        values = tuple(f"{self.name}-{self._next + n}" for n in range(self.rng.choice((1, 1, 2))))
        self._next += len(values)
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + len(values)
        send = Send(
            self.name, topic, partition, values, self._loop.time(), producer_id=txn.producer_id,
            sequence=sequence, session=txn.session, txn=txn.number,
        )  # fmt: skip
        if self.is_keyed:
            send.keys = tuple(f"{self.name}.{self.rng.randrange(KEYS)}" for _ in values)
        self.history.sends.append(send)
        request = self._produce_request(send, txn)
        while True:
            send.attempts += 1
            code = await self._attempt(send, request)
            send.end_s = self._loop.time()
            if code in ACKED:
                return
            if code in SETTLED:
                raise Refused(code)
            await self.forget_leader(topic, partition)

    def _produce_request(self, send: Send, txn: Txn) -> ProduceRequest:
        now_ms = EPOCH_MS + int(self._loop.time() * 1000)
        keys: tuple[str | None, ...] = send.keys or (None,) * len(send.values)
        batch = build_batch(
            [
                (None if key is None else key.encode(), f"{value} {'x' * 50}".encode(), (), now_ms)
                for key, value in zip(keys, send.values, strict=True)
            ],
            producer_id=txn.producer_id,
            producer_epoch=txn.epoch,
            base_sequence=send.sequence,
            transactional=True,
        )
        part = ProduceRequest.PartitionProduceData(index=send.partition, records=batch)
        return ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=REQUEST_MS,
            topic_data=[ProduceRequest.TopicProduceData(name=send.topic, partition_data=[part])],
        )

    async def _attempt(self, send: Send, request: ProduceRequest) -> ErrorCode:
        node = await self.leader(send.topic, send.partition)
        try:
            answer = await self.ask(node, request, 8, CLIENT_TIMEOUT_MS)
        except LOST as error:
            send.error = type(error).__name__
            return ErrorCode.UNKNOWN_SERVER_ERROR
        response = answer.responses[0].partition_responses[0]
        code = ErrorCode(response.error_code)
        if code in ACKED:
            send.outcome, send.error = "ok", ""
            send.offset, send.node = response.base_offset, node
        else:
            send.error = code.name
        return code


class KeyedWriter(Writer):
    """Writes values of a few keys."""

    is_keyed = True
