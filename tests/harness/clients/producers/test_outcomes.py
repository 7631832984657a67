"""What each library's errors say of a send, and of a commit: `fail` only when it is certain."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiokafka.errors
import kafka.errors
import pytest
from aiokafka.producer import message_accumulator
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import TopicPartition
from confluent_kafka import KafkaError, KafkaException, Message

from tests.waiting import until
from urteil.harness.clients.consumers.group_consumer import CommitAttempts
from urteil.harness.clients.libraries.aiokafka_producer import AiokafkaProducer
from urteil.harness.clients.libraries.confluent_producer import ConfluentProducer
from urteil.harness.clients.payload import decode
from urteil.harness.clients.producers.delivery_attempts import REFUSALS, Attempts
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.evidence.journal import Fail, Info, JournalReader, JournalWriter, Ok
from urteil.harness.scenario import TopicFact, WorkloadSpec

TOPIC = TopicFact(name="t", topic_id="id", partitions=2, replication_factor=1)
LATER = (
    KafkaError._MSG_TIMED_OUT,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._PURGE_QUEUE,
    KafkaError._PURGE_INFLIGHT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
)


def spec(tmp_path: Path, client: str) -> ClientSpec:
    load = WorkloadSpec(client=client)
    return ClientSpec(
        run="r",
        client="p1",
        session=1,
        kind="producer",
        bootstrap=("localhost:1",),
        journal=str(tmp_path / "p1.jsonl"),
        topics=(TOPIC,),
        workload=load,
    )


def entries(tmp_path: Path) -> list[Any]:
    return list(JournalReader(tmp_path / "p1.jsonl"))


@pytest.mark.parametrize("code", LATER)
def test_late_error_of_librdkafka_is_unknown(tmp_path: Path, code: int) -> None:
    with JournalWriter(tmp_path / "p1.jsonl") as journal:
        producer = ConfluentProducer(spec(tmp_path, "confluent-kafka"), journal)
        producer._on_delivery(7, 1, KafkaError(code), None)
    (entry,) = entries(tmp_path)
    assert isinstance(entry, Info)
    assert (entry.op, entry.error, entry.ambiguous) == (7, KafkaError(code).name(), True)


@pytest.mark.parametrize(
    "error", [BufferError("full"), KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))]
)
def test_record_that_librdkafka_rejects_certainly_failed(tmp_path: Path, error: Exception) -> None:
    def reject(*_: Any, **__: Any) -> None:
        raise error

    with JournalWriter(tmp_path / "p1.jsonl") as journal:
        producer = ConfluentProducer(spec(tmp_path, "confluent-kafka"), journal)
        producer._kafka = SimpleNamespace(produce=reject)  # type: ignore[assignment]
        producer.send(0)
    _, entry = entries(tmp_path)
    assert isinstance(entry, Fail)
    assert (entry.attempts, entry.ambiguous) == (0, False)


def test_fatal_error_of_librdkafka_needs_another_producer(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "p1.jsonl") as journal:
        producer = ConfluentProducer(spec(tmp_path, "confluent-kafka"), journal)
        producer._on_fatal(KafkaError(KafkaError._FATAL, "fenced", True))
        assert producer._fatal


def test_librdkafka_reports_the_offset(tmp_path: Path) -> None:
    delivered = SimpleNamespace(offset=lambda: 42, partition=lambda: 1)
    with JournalWriter(tmp_path / "p1.jsonl") as journal:
        producer = ConfluentProducer(spec(tmp_path, "confluent-kafka"), journal)
        producer._on_delivery(7, 1, None, delivered)
    (entry,) = entries(tmp_path)
    assert isinstance(entry, Ok)
    assert (entry.partition, entry.offset, entry.attempts) == (1, 42, -1)


def test_offset_of_librdkafka_may_be_unknown(tmp_path: Path) -> None:
    """If a batch timed out and the next one succeeded, librdkafka reports both as written."""
    with JournalWriter(tmp_path / "p1.jsonl") as journal:
        producer = ConfluentProducer(spec(tmp_path, "confluent-kafka"), journal)
        producer._on_delivery(7, 1, None, Message(topic="t", partition=1))
    (entry,) = entries(tmp_path)
    assert isinstance(entry, Ok)
    assert (entry.partition, entry.offset) == (1, None)


@pytest.mark.parametrize(
    "error",
    [
        aiokafka.errors.KafkaTimeoutError(),
        aiokafka.errors.KafkaConnectionError(),
        aiokafka.errors.RequestTimedOutError(),
        aiokafka.errors.NotLeaderForPartitionError(),
        aiokafka.errors.NotEnoughReplicasError(),
        aiokafka.errors.NotEnoughReplicasAfterAppendError(),
        aiokafka.errors.MessageSizeTooLargeError(),
        asyncio.CancelledError(),
    ],
)
def test_late_error_of_aiokafka_is_unknown(tmp_path: Path, error: BaseException) -> None:
    with JournalWriter(tmp_path / "p1.jsonl") as journal:
        producer = AiokafkaProducer(spec(tmp_path, "aiokafka"), journal)
        producer.reserve_slot()
        future: asyncio.Future[Any] = producer._loop.create_future()
        if isinstance(error, asyncio.CancelledError):
            future.cancel()
        else:
            future.set_exception(error)
        producer._complete_send(7, 1, future)
    (entry,) = entries(tmp_path)
    assert isinstance(entry, Info)
    assert entry.error == type(error).__name__


def test_offsets_of_duplicates_are_unknown_to_aiokafka(tmp_path: Path) -> None:
    """Also that of the second record, which aiokafka would count on from -1."""
    with JournalWriter(tmp_path / "p1.jsonl") as journal:
        producer = AiokafkaProducer(spec(tmp_path, "aiokafka"), journal)

        async def complete(base_offset: int) -> None:
            builder = BatchBuilder(1 << 14, 0)
            batch = message_accumulator.MessageBatch(TopicPartition("t", 1), builder, 9, 0)
            futures = [batch.append(b"k", b"v", 1) for _ in range(2)]
            batch.done(base_offset, -1, 0)
            for op, future in enumerate(futures):
                producer.reserve_slot()
                producer._complete_send(op, 1, future)

        for base_offset in (-1, 40):
            asyncio.run_coroutine_threadsafe(complete(base_offset), producer._loop).result(9)
    assert [entry.offset for entry in entries(tmp_path)] == [None, None, 40, 41]


@pytest.mark.parametrize("refusal", sorted(REFUSALS, key=lambda error: error.__name__))
def test_batch_certainly_failed_if_every_attempt_was_rejected(refusal: Any) -> None:
    assert Attempts(sent=1, refused=1).has_certainly_failed()
    assert not Attempts(sent=2, refused=1).has_certainly_failed()
    assert refusal.__name__ != "NotLeaderForPartitionError"


@pytest.mark.parametrize(
    ("error", "attempts", "outcome"),
    [
        (kafka.errors.CommitFailedError(), 1, "fail"),
        (kafka.errors.IllegalGenerationError(), 1, "fail"),
        (kafka.errors.UnknownMemberIdError(), 1, "fail"),
        (kafka.errors.CommitFailedError(), 2, "info"),
        (kafka.errors.KafkaTimeoutError(), 1, "info"),
        (kafka.errors.KafkaTimeoutError(), 0, "fail"),
        (kafka.errors.NotCoordinatorError(), 1, "info"),
        (kafka.errors.OffsetMetadataTooLargeError(), 1, "info"),
        (kafka.errors.KafkaConnectionError(), 3, "info"),
    ],
)
def test_commit_failed_only_if_its_single_request_was_rejected(
    error: Any, attempts: int, outcome: str
) -> None:
    coordinator = SimpleNamespace(_send_offset_commit_request=None)
    watch = CommitAttempts(SimpleNamespace(_coordinator=coordinator))  # type: ignore[arg-type]
    watch.count = attempts
    assert watch.outcome(error) == outcome
    assert watch.repetition_note() == (f"{attempts} attempts" if attempts > 1 else None)


class _FullBatch:
    """An aiokafka producer in which the first record of partition 0 waits for room."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._calls = loop, 0
        self.room = asyncio.Event()
        self.sent: list[tuple[int, bytes]] = []

    async def send(self, _topic: str, value: bytes, _key: bytes, partition: int, *_: Any) -> Any:
        self._calls += 1
        if self._calls == 1:
            await self.room.wait()
        self.sent.append((partition, value))
        return self._loop.create_future()


def test_full_batch_keeps_the_order_of_a_partition(tmp_path: Path) -> None:
    with JournalWriter(tmp_path / "p1.jsonl") as journal:
        producer = AiokafkaProducer(spec(tmp_path, "aiokafka"), journal)
        full: Any = _FullBatch(producer._loop)
        producer._kafka = full
        for op in range(4):
            producer.send(op)
        until(lambda: len(full.sent) == 2)
        assert [partition for partition, _ in full.sent] == [1, 1]
        producer._loop.call_soon_threadsafe(full.room.set)
        until(lambda: len(full.sent) == 4)
    values = [value for partition, value in full.sent if partition == 0]
    assert [decode("r", value, None).value_id for value in values] == ["r/p1/0", "r/p1/2"]


def test_aiokafka_producer_without_broker_is_not_ready(
    tmp_path: Path,
) -> None:
    with JournalWriter(tmp_path / "p1.jsonl") as journal:
        producer = AiokafkaProducer(spec(tmp_path, "aiokafka"), journal)
        assert not producer.ensure_ready()
        assert not producer.ensure_ready()
        producer.close(1.0)
