"""A producer with aiokafka.

aiokafka retries internally and reports neither attempts nor the responding broker. So a record
certainly failed only if `send` itself rejected it.

`send` waits while the batch of a partition is full, and does not keep the order of several waiting
calls. So the calls for one partition wait for each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import defaultdict
from functools import partial
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.producer import message_accumulator

from urteil.harness.clients.libraries.unreported_attempts import completion_without_attempts
from urteil.harness.clients.producers.produced_records import Record, Records
from urteil.harness.clients.spec import METADATA_MAX_AGE_MS, ClientSpec, library_settings
from urteil.harness.evidence.journal import Fail, Info, JournalWriter, Ok, Send

ROOM = 20_000
ROOM_WAIT_S = 0.2
START_DEADLINE_S = 10.0


class _Batch(message_accumulator.MessageBatch):  # type: ignore[misc]
    """A fix for aiokafka 0.14, which counts offsets on from the -1 of a duplicate batch."""

    def done(self, base_offset: int, *more: Any) -> None:
        if base_offset < 0:
            self.done_noack()
        else:
            super().done(base_offset, *more)


message_accumulator.MessageBatch = _Batch


def producer_config(spec: ClientSpec) -> dict[str, Any]:
    """acks, idempotence, timeouts and `SendOptions` by aiokafka's names, without retries."""
    load = spec.workload
    config: dict[str, Any] = {
        "bootstrap_servers": list(spec.bootstrap),
        "client_id": spec.client,
        "acks": "all" if load.acks == -1 else load.acks,
        "enable_idempotence": spec.idempotent,
        "request_timeout_ms": load.delivery_timeout_ms,
        "retry_backoff_ms": 50,
        "metadata_max_age_ms": METADATA_MAX_AGE_MS,
    }
    settings = library_settings(load)
    settings.pop("retries", None)
    if "batch_size" in settings:
        settings["max_batch_size"] = settings.pop("batch_size")
    return config | settings


class AiokafkaProducer:
    """Sends and journals. Its event loop runs in a thread of its own."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._spec = spec
        self._acks = spec.workload.acks
        self._journal = journal
        self._records = Records(spec)
        self._room = threading.BoundedSemaphore(ROOM)
        self._kafka: AIOKafkaProducer | None = None
        self._turns: dict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def ensure_ready(self) -> bool:
        """Start a producer if there is none. False if that failed."""
        if self._kafka is None:
            starting = asyncio.run_coroutine_threadsafe(self._start(), self._loop)
            try:
                self._kafka = starting.result(START_DEADLINE_S)
            except (KafkaError, TimeoutError, OSError):
                starting.cancel()
                return False
        return True

    async def _start(self) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(**producer_config(self._spec))
        try:
            await producer.start()
        except BaseException:
            await producer.stop()
            raise
        return producer

    def reserve_slot(self) -> bool:
        """Reserve a place for another open record. False if there is none after a short wait."""
        return self._room.acquire(timeout=ROOM_WAIT_S)

    def send(self, op: int) -> None:
        """Send record `op`."""
        record = self._records.record(op)
        self._journal.write(
            Send(op, time.monotonic_ns(), record.topic, record.partition, record.key,
                 record.timestamp_ms, record.value is None)
        )  # fmt: skip
        asyncio.run_coroutine_threadsafe(self._send(op, record), self._loop)

    async def _send(self, op: int, record: Record) -> None:
        assert self._kafka is not None
        try:
            async with self._turns[record.topic, record.partition]:
                future = await self._kafka.send(
                    record.topic, record.value, record.key.encode(), record.partition,
                    record.timestamp_ms, record.headers,
                )  # fmt: skip
        except (KafkaError, ValueError, AssertionError) as error:
            self._complete(
                completion_without_attempts(
                    Fail, op, type(error).__name__, record.partition, attempts=0
                )
            )
            return
        future.add_done_callback(partial(self._complete_send, op, record.partition))

    def _complete_send(self, op: int, partition: int, future: asyncio.Future[Any]) -> None:
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            self._complete(completion_without_attempts(Info, op, type(error).__name__, partition))
            return
        metadata = future.result()
        offset = (
            metadata.offset
            if self._acks != 0 and metadata is not None and metadata.offset >= 0
            else None
        )
        self._complete(completion_without_attempts(Ok, op, None, partition, offset))

    def _complete(self, entry: Ok | Fail | Info) -> None:
        self._journal.write(entry)
        self._room.release()

    def process_completions(self) -> None:
        """Completions arrive in the event loop."""

    def close(self, flush_deadline_s: float) -> None:
        """Flush within the deadline, then give up the rest."""
        if self._kafka is not None:
            ending = asyncio.run_coroutine_threadsafe(self._kafka.stop(), self._loop)
            with contextlib.suppress(KafkaError, TimeoutError):
                ending.result(flush_deadline_s)
