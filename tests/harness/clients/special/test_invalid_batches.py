"""Invalid batches are well formed except for one property; resent batches are written once."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest
from kafka.record import MemoryRecords

from tests.harness.clients.specs import spec_of
from urteil.harness.clients.payload import Encoder, decode
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.special.invalid_batches import (
    corrupt_batch,
    invalid_batch,
    invalid_kinds,
)
from urteil.harness.clients.special.resent_batches import (
    BATCHES,
    FIRST_SEQUENCE,
    LAST_SEQUENCE,
    LATE_EVERY,
    OUT_OF_ORDER,
    BatchResender,
    ProduceResult,
)
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import Info, JournalReader, JournalWriter, Ok
from urteil.harness.protocol.produce_requests import (
    produce_request,
    read_produce_response,
    single_record_batch,
)
from urteil.harness.scenario import TopicFact, TopicSpec, WorkloadSpec


def test_corrupt_batch_has_only_a_wrong_crc() -> None:
    value = Encoder("run", "raw1", 100).encode(7, b"k", 2, 1_000)
    batch = MemoryRecords(corrupt_batch(b"k", value, 1_000)).next_batch()
    assert not batch.validate_crc()
    (record,) = batch
    payload = decode("run", record.value, record.key)
    assert (record.key, payload.value_id, payload.intact) == (b"k", "run/raw1/7", False)


@pytest.mark.parametrize(
    ("kind", "limit", "size", "shift_ms"),
    [("large", 5_000, 5_001, 0), ("old", 60_000, 0, -120_000), ("new", 60_000, 0, 120_000)],
)
def test_invalid_batch_only_exceeds_its_limit(
    kind: str, limit: int, size: int, shift_ms: int
) -> None:
    encoder = Encoder("run", "raw1", limit if size else 100)
    data, timestamp_ms = invalid_batch(encoder, 7, "k", 2, kind, limit)
    batch = MemoryRecords(data).next_batch()
    assert batch.validate_crc()
    assert len(data) >= size
    (record,) = batch
    assert decode("run", record.value, record.key, (), timestamp_ms).intact
    assert record.timestamp == timestamp_ms
    assert abs(time.time() * 1000 + shift_ms - timestamp_ms) < 30_000


def test_kinds_of_invalid_batches_depend_on_the_topic() -> None:
    assert invalid_kinds({}) == ["crc"]
    assert invalid_kinds({"max.message.bytes": "1", "retention.ms": "1"}) == ["crc", "large"]


def test_produce_request_has_its_size() -> None:
    frame = produce_request(9, "t", 1, b"xyz", 500)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame.endswith(b"xyz")


def test_produce_response_is_read() -> None:
    answer = bytes.fromhex("00000009 00000001 0001 74 00000001 00000001 0002 ffffffffffffffff")
    assert read_produce_response(answer, "t") == (2, -1)


def test_single_record_batch_has_producer_fields() -> None:
    batch = MemoryRecords(
        single_record_batch(b"k", b"value", 1_000, producer_id=42, epoch=3, sequence=7)
    ).next_batch()
    assert batch.validate_crc()
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (42, 3, 7)
    (record,) = batch
    assert (record.key, record.value) == (b"k", b"value")


class _Broker:
    """Answers every Produce like a broker that remembers so many batches. With `wraps` the
    sequences continue at 0 after the largest."""

    def __init__(self, remembers: int, *, wraps: bool = True) -> None:
        self.remembers = remembers
        self.wraps = wraps
        self.log: list[tuple[int, int]] = []
        self.refused = 0

    def answer(self, epoch: int, sequence: int, records: int = 1) -> tuple[int, int]:
        if records > 1:  # it overlaps what was written
            self.refused += 1
            return OUT_OF_ORDER, -1
        results = [place for place, (of, _) in enumerate(self.log) if of == epoch]
        for place in results[-self.remembers :]:
            if self.log[place] == (epoch, sequence):
                return 0, place
        last = self.log[results[-1]][1] if results else -1
        expected = 0 if last == LAST_SEQUENCE and self.wraps else last + 1
        if self.log and sequence != expected:
            return OUT_OF_ORDER, -1
        self.log.append((epoch, sequence))
        return 0, len(self.log) - 1


def _play(
    tmp_path: Path,
    brokers: _Broker | Mapping[str, _Broker],
    monkeypatch: pytest.MonkeyPatch,
    *,
    rounds: int = 3,
) -> list[Ok | Info]:
    """The completions of the rounds against a broker of the topic `t`, or of each topic."""
    by_topic = {"t": brokers} if isinstance(brokers, _Broker) else brokers
    topics = tuple(
        TopicFact(name=name, topic_id="-", partitions=1, replication_factor=1) for name in by_topic
    )
    spec = ClientSpec(
        run="r",
        client="repeater1",
        session=0,
        kind="repeater",
        bootstrap=("nowhere:1",),
        journal=str(tmp_path / "journal"),
        topics=topics,
        workload=WorkloadSpec(topics=(TopicSpec(name="t", partitions=1),), delivery_timeout_ms=500),
    )

    def ask(
        self: BatchResender, address: str, frames: Sequence[bytes], topic: str
    ) -> list[ProduceResult]:
        empty = len(produce_request(0, topic, 0, b"", 500))
        results = [MemoryRecords(frame[empty:]).next_batch() for frame in frames]
        return [
            by_topic[topic].answer(result.producer_epoch, result.base_sequence, len(list(result)))
            for result in results
        ]

    def new_producer(self: BatchResender) -> bool:
        self._producer_id, self._epoch = 1, 0
        return True

    monkeypatch.setattr(BatchResender, "_request", ask)
    monkeypatch.setattr(BatchResender, "_new_producer", new_producer)
    with JournalWriter(Path(spec.journal)) as journal:
        repeater = BatchResender(spec, journal, Stop())
        for number in range(rounds):
            repeater.run_round(number)
    return [entry for entry in JournalReader(Path(spec.journal)) if isinstance(entry, Ok | Info)]


def test_resent_records_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = _Broker(remembers=5)
    acks = _play(tmp_path, broker, monkeypatch)
    sequences = [(FIRST_SEQUENCE + n) % (LAST_SEQUENCE + 1) for n in range(3 * BATCHES)]
    assert broker.log == [(0, sequence) for sequence in sequences]
    assert sequences[-1] == 2
    assert [ack.offset for ack in acks] == list(range(3 * BATCHES))
    assert broker.refused == 3, "a batch a round that begins as a written one and goes on"


def test_each_topic_has_sequences_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions of the same number share none: a broker takes any first sequence, and with it a
    batch that was sent too early."""
    brokers = {name: _Broker(remembers=5) for name in ("t", "u")}
    acks = _play(tmp_path, brokers, monkeypatch, rounds=4)
    sequences = [(FIRST_SEQUENCE + n) % (LAST_SEQUENCE + 1) for n in range(2 * BATCHES)]
    assert [broker.log for broker in brokers.values()] == [[(0, n) for n in sequences]] * 2
    assert all(isinstance(ack, Ok) for ack in acks)


def test_forgotten_batches_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = _Broker(remembers=1)
    _play(tmp_path, broker, monkeypatch)
    assert len(broker.log) > 3 * BATCHES


def test_batches_of_an_idle_producer_are_resent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fourth round resends the first one; its successors write the others."""
    sent: list[tuple[bytes, ...]] = []
    producers: list[int] = []

    def ask(
        self: BatchResender, address: str, frames: Sequence[bytes], topic: str
    ) -> list[ProduceResult]:
        sent.append(tuple(frames))
        return [(0, 0)] * len(frames)

    def new_producer(self: BatchResender) -> bool:
        producers.append(len(producers))
        self._producer_id, self._epoch = producers[-1], 0
        return True

    monkeypatch.setattr(BatchResender, "_request", ask)
    monkeypatch.setattr(BatchResender, "_new_producer", new_producer)
    spec = spec_of("repeater1", "repeater", repeated_late="1")
    spec = msgspec.structs.replace(spec, journal=str(tmp_path / "journal"))
    with JournalWriter(Path(spec.journal)) as journal:
        repeater = BatchResender(spec, journal, Stop())
        for number in range(2 * LATE_EVERY + 1):
            repeater.run_round(number)
    again = [place for place, frames in enumerate(sent) if frames == sent[0]]
    assert len(again) == 2 + 3  # once, again, and after rounds 0, 4 and 8
    assert again[-1] == len(sent) - 1
    assert producers == [0, 1]


def test_out_of_order_error_is_journaled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    completions = _play(tmp_path, _Broker(remembers=5, wraps=False), monkeypatch)
    refused = [completion.error for completion in completions if isinstance(completion, Info)]
    assert refused == ["OUT_OF_ORDER_SEQUENCE_NUMBER"] * 3
