"""Sends markers to the leaders of a transaction's partitions until every partition has one.

Markers that wait for the same broker share a request. Source: `TransactionMarkerChannelManager`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from urteil.broker.base.purgatory import DelayedOperation
from urteil.broker.net.channels import Channels
from urteil.broker.replication.metadata_cache import MetadataCache
from urteil.broker.transactions.transaction import TopicPartition
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

log = logging.getLogger("transactions")

VERSION = 1
PURPOSE = "txn-markers"
RETRY_MS = 100
DONE = (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """The commit or abort of one producer's transaction."""

    producer_id: int
    producer_epoch: int
    commit: bool
    coordinator_epoch: int


Order = tuple[Marker, tuple[TopicPartition, ...]]
"""A marker, and the partitions of one leader that need it."""
Outcome = dict[TopicPartition, ErrorCode]
WriteHere = Callable[[Sequence[Order]], Awaitable[list[Outcome]]]


class MarkerSender:
    """Sends markers; `write_here` writes those whose leader is this broker, `me`."""

    def __init__(
        self,
        *,
        me: int,
        listener: str,
        metadata: MetadataCache,
        channels: Channels,
        write_here: WriteHere,
        timeout_ms: int,
    ) -> None:
        self._me = me
        self._listener = listener
        self._metadata = metadata
        self._channels = channels
        self._write_here = write_here
        self._timeout_ms = timeout_ms
        self._queues: dict[int, _Queue] = {}

    async def write(
        self,
        marker: Marker,
        partitions: Iterable[TopicPartition],
        is_wanted: Callable[[], bool],
        record_remaining: Callable[[frozenset[TopicPartition]], None],
    ) -> bool:
        """Return True when every partition that exists has the marker.

        `record_remaining` receives the partitions that lack it, after each change. False if the
        marker is not wanted any more, or if a later coordinator has written one.
        """
        remaining = set(partitions)
        while is_wanted():
            self._forget_deleted(remaining)
            record_remaining(frozenset(remaining))
            if not remaining:
                return True
            outcome = await self._send_round(marker, remaining)
            remaining -= {key for key, error in outcome.items() if error in DONE}
            fenced = sorted(key for key, error in outcome.items() if error in FENCED)
            if fenced:
                log.warning("%s is fenced at %s", marker, fenced)
                return False
            if remaining:
                log.info("%s: %d partitions are tried again: %s", marker, len(remaining), outcome)
                record_remaining(frozenset(remaining))
                await self.wait_for_metadata()
        return False

    def _forget_deleted(self, remaining: set[TopicPartition]) -> None:
        remaining -= {key for key in remaining if self._metadata.partition(*key) is None}

    async def _send_round(self, marker: Marker, remaining: set[TopicPartition]) -> Outcome:
        by_node: dict[int, list[TopicPartition]] = {}
        for key in sorted(remaining):
            state = self._metadata.partition(*key)
            if state is not None and state.leader >= 0:
                by_node.setdefault(state.leader, []).append(key)
        pending = [self._queue(node).put((marker, tuple(keys))) for node, keys in by_node.items()]
        outcome: Outcome = {}
        for answer in await asyncio.gather(*pending):
            outcome.update(answer)
        return outcome

    async def wait_for_metadata(self) -> None:
        """Wait for a change of the cluster's metadata, at most RETRY_MS."""
        calls = iter((None,))  # the first check runs before any change
        await DelayedOperation(lambda: next(calls, True), lambda: True).wait(
            [self._metadata.on_update], RETRY_MS
        )

    def _queue(self, node: int) -> _Queue:
        if node not in self._queues:
            self._queues[node] = _Queue(lambda orders: self._send(node, orders))
        return self._queues[node]

    async def _send(self, node: int, orders: Sequence[Order]) -> list[Outcome]:
        if node == self._me:
            return await self._write_here(orders)
        endpoint = self._metadata.endpoint(node, self._listener)
        if endpoint is None:
            raise ConnectionError(f"broker {node} is not alive")
        response: WriteTxnMarkersResponse = await self._channels.send(
            endpoint, _request(orders), VERSION, self._timeout_ms, purpose=PURPOSE
        )
        return _outcomes(orders, response)

    def close(self) -> None:
        for queue in self._queues.values():
            queue.close()


class _Queue:
    """Orders for one broker; orders that arrive during a request share the next one."""

    def __init__(self, send: Callable[[Sequence[Order]], Awaitable[list[Outcome]]]) -> None:
        self._send = send
        self._waiting: list[tuple[Order, asyncio.Future[Outcome]]] = []
        self._worker: asyncio.Task[None] | None = None

    def put(self, order: Order) -> asyncio.Future[Outcome]:
        """The error of each partition; empty if the broker was not reached."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append((order, future))
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        return future

    async def _work(self) -> None:
        try:
            while self._waiting:
                taken, self._waiting = self._waiting, []
                try:
                    outcomes = await self._send([order for order, _ in taken])
                except (ConnectionError, TimeoutError) as error:
                    log.info("markers were not sent: %s", error)
                    outcomes = [{} for _ in taken]
                except Exception:
                    log.exception("markers failed; they are sent again")
                    outcomes = [{} for _ in taken]
                for (_, future), outcome in zip(taken, outcomes, strict=True):
                    if not future.done():
                        future.set_result(outcome)
        finally:
            self._worker = None

    def close(self) -> None:
        if self._worker is not None:
            self._worker.cancel()


def _request(orders: Sequence[Order]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                transaction_result=marker.commit,
                coordinator_epoch=marker.coordinator_epoch,
                topics=[
                    WriteTxnMarkersRequest.WritableTxnMarkerTopic(
                        name=topic,
                        partition_indexes=[partition for name, partition in keys if name == topic],
                    )
                    for topic in dict.fromkeys(name for name, _ in keys)
                ],
            )
            for marker, keys in orders
        ]
    )


def _outcomes(orders: Sequence[Order], response: WriteTxnMarkersResponse) -> list[Outcome]:
    """The answers by order, matched by producer id: Apache Kafka answers in any sequence."""
    outcomes: dict[int, Outcome] = {marker.producer_id: {} for marker, _ in orders}
    for answer in response.markers:
        outcomes[answer.producer_id] = {
            (topic.name, partition.partition_index): ErrorCode(partition.error_code)
            for topic in answer.topics
            for partition in topic.partitions
        }
    return [outcomes[marker.producer_id] for marker, _ in orders]
