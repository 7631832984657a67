"""A client that loses its answers: it sends batches again that were written, and one too early.

    python -m urteil.harness.clients.special.resent_batches SPEC.json

kafka-python has one batch of a partition under way, the Java client and librdkafka have five; so
the requests are packed here. Each round is five batches of an idempotent producer to one partition.
First the second of them alone, as if the first had been refused: the broker must refuse it, too.
Then all five on one connection, then all five again on another one, as after answers that got lost:
each must be answered as before and lie in the log once. If the first of them is told that it is out
of order, the broker has forgotten: the producer raises its epoch and sends all again, as the Java
client does (KIP-360). A new producer's sequences begin shortly before the last one there is, which
a broker that knows nothing of it must take: after it comes 0. `options`: `repeated_rounds`, one
every `repeated_every_ms` (default 500). With `repeated_late` another producer takes over after the
first round of each partition, and these are sent again time and again, as long as the run lasts: a
broker must know a producer that is idle, whatever became of its log since. A round of which a
leader has forgotten the first record is given up then: an Apache Kafka that was killed knows the
last batch of each producer alone, and what is sent again with another epoch lies twice
(docs/results/finds.md).
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.payload import Encoder
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.special.invalid_batches import EVERY_MS
from urteil.harness.evidence.journal import Info, JournalWriter, Ok, Send
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.produce_requests import (
    NOT_HERE,
    produce_request,
    read_produce_response,
    single_record_batch,
)

UNDER_WAY = 5
LAST_SEQUENCE = (1 << 31) - 1
FIRST_SEQUENCE = LAST_SEQUENCE - 2 * UNDER_WAY - 1
"""The third round of a partition goes beyond the last one."""
OUT_OF_ORDER = 45
INIT_PRODUCER_ID = 22
RETRY_S = 0.1
LATE_EVERY = 4
"""Rounds from one repetition of the oldest batches to the next."""

ProduceResult = tuple[int, int]


@dataclass(slots=True)
class Batch:
    """One record of a round and what was told of it."""

    op: int
    key: bytes
    value: bytes
    timestamp_ms: int
    sent: int = 0
    answer: ProduceResult | None = None


class Repeater:
    """Sends rounds and journals what came of each record."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        self._spec = spec
        self._journal = journal
        self._stop = stop
        self._encoder = Encoder(spec.run, spec.client, spec.workload.value_bytes)
        self._sequences: dict[int, int] = {}
        self._first_sequence = FIRST_SEQUENCE
        self._producer_id = self._epoch = -1
        self._timeout_ms = spec.workload.request_timeout_ms
        self._is_late = bool(int(spec.workload.options.get("repeated_late", "0")))
        self._is_passed_on = False
        self._oldest: dict[int, tuple[str, list[bytes]]] = {}

    def round(self, number: int) -> None:
        """Five new records to one partition; what is not answered in time stays unknown."""
        slots = self._spec.partitions()
        topic, partition = slots[number % len(slots)]
        first = number * UNDER_WAY
        batches = [self._begin(op, topic, partition) for op in range(first, first + UNDER_WAY)]
        deadline = time.monotonic() + self._spec.workload.delivery_timeout_ms / 1000
        while time.monotonic() < deadline and not self._stop.asked():
            if self._attempt(topic, partition, batches):
                self._remember(topic, partition, batches)
                break
            if self._is_late and _is_forgotten(batches):
                self._give_up(batches)
                break
            self._stop.wait(RETRY_S)
        else:
            self._producer_id = -1  # what became of them is unknown: begin anew
        self._sequences[partition] = self._sequence(partition, UNDER_WAY)
        for batch in batches:
            self._note(batch, partition)
        self._send_oldest(number)

    def _give_up(self, batches: Sequence[Batch]) -> None:
        """What became of those that were refused is unknown: begin anew."""
        self._producer_id = -1
        for batch in batches:
            if batch.answer is not None and batch.answer[0] == OUT_OF_ORDER:
                batch.answer = None

    def _remember(self, topic: str, partition: int, batches: Sequence[Batch]) -> None:
        """The first round of each partition; when there is one of each, their producer has written
        its last."""
        if not self._is_late or partition in self._oldest:
            return
        frames = [
            self._frame(topic, partition, batch, self._sequence(partition, n))
            for n, batch in enumerate(batches)
        ]
        self._oldest[partition] = topic, frames

    def _send_oldest(self, number: int) -> None:
        """To every broker, of which one leads. Nothing is noted: they were acknowledged."""
        if len(self._oldest) < len(self._spec.partitions()):
            return
        if not self._is_passed_on:
            self._is_passed_on, self._producer_id = True, -1
        if number % LATE_EVERY:
            return
        for topic, frames in self._oldest.values():
            for address in self._spec.bootstrap:
                try:
                    self._ask(address, frames, topic)
                except OSError:
                    continue

    def _begin(self, op: int, topic: str, partition: int) -> Batch:
        key, timestamp_ms = f"repeated{partition}", time.time_ns() // 1_000_000
        value = self._encoder.encode(op, key.encode(), partition, timestamp_ms)
        self._journal.write(Send(op, time.monotonic_ns(), topic, partition, key, timestamp_ms))
        return Batch(op, key.encode(), value, timestamp_ms)

    def _attempt(self, topic: str, partition: int, batches: Sequence[Batch]) -> bool:
        """Too early, once, again; True when all are acknowledged."""
        if self._producer_id < 0 and not self._new_producer():
            return False
        if partition in self._sequences and batches[0].sent == 0:
            self._deliver(topic, partition, batches[:2], [1])
        everything = range(len(batches))
        for _ in range(2):
            self._deliver(topic, partition, batches, everything)
        answers = [batch.answer[0] if batch.answer else -1 for batch in batches]
        if _is_forgotten(batches) and not self._is_late:
            self._epoch += 1
            self._begin_at(0)
        return not any(answers)

    def _deliver(
        self, topic: str, partition: int, batches: Sequence[Batch], which: Sequence[int]
    ) -> None:
        """Send some of the round on one connection to whoever leads: brokers are asked in turn."""
        frames = [
            self._frame(topic, partition, batches[n], self._sequence(partition, n)) for n in which
        ]
        for n in which:
            batches[n].answer = None
        for address in self._spec.bootstrap:
            for n in which:
                batches[n].sent += 1
            try:
                answers = self._ask(address, frames, topic)
            except OSError:
                continue
            if answers[0][0] not in NOT_HERE:
                for n, answer in zip(which, answers, strict=True):
                    batches[n].answer = answer
                return

    def _frame(self, topic: str, partition: int, batch: Batch, sequence: int) -> bytes:
        data = single_record_batch(
            batch.key,
            batch.value,
            batch.timestamp_ms,
            producer_id=self._producer_id,
            epoch=self._epoch,
            sequence=sequence,
        )
        return produce_request(batch.op, topic, partition, data, self._timeout_ms)

    def _ask(self, address: str, frames: Sequence[bytes], topic: str) -> list[ProduceResult]:
        wire = Connection(address, self._timeout_ms / 1000)
        try:
            return [read_produce_response(answer, topic) for answer in wire.call_all(frames)]
        finally:
            wire.close()

    def _new_producer(self) -> bool:
        """A producer id of whichever broker answers; every sequence begins anew."""
        for address in self._spec.bootstrap:
            try:
                wire = Connection(address, self._timeout_ms / 1000)
                try:
                    answer = wire.call(init_producer_id())
                finally:
                    wire.close()
            except OSError:
                continue
            error, producer_id, epoch = struct.unpack_from(">hqh", answer, 8)
            if error == 0:
                self._producer_id, self._epoch = producer_id, epoch
                self._begin_at(FIRST_SEQUENCE)
                return True
        return False

    def _begin_at(self, sequence: int) -> None:
        """In every partition anew."""
        self._sequences.clear()
        self._first_sequence = sequence

    def _sequence(self, partition: int, ahead: int) -> int:
        return (self._sequences.get(partition, self._first_sequence) + ahead) & LAST_SEQUENCE

    def _note(self, batch: Batch, partition: int) -> None:
        error, offset = batch.answer or (-1, -1)
        outcome = Ok if error == 0 else Info
        told = "OUT_OF_ORDER_SEQUENCE_NUMBER" if error == OUT_OF_ORDER else f"error {error}"
        self._journal.write(
            outcome(batch.op, time.monotonic_ns(), None if error == 0 else told,
                    batch.sent, True, partition, offset if error == 0 else None, None,
                    self._producer_id, self._epoch, None, None)
        )  # fmt: skip


def _is_forgotten(batches: Sequence[Batch]) -> bool:
    """Whether a leader does not know the first of them, nor what comes before it."""
    first = batches[0].answer
    return first is not None and first[0] == OUT_OF_ORDER


def init_producer_id() -> bytes:
    """The whole frame of InitProducerId 0 without a transactional id."""
    body = struct.pack(">hhih8shi", INIT_PRODUCER_ID, 0, 0, 8, b"repeater", -1, 60_000)
    return struct.pack(">i", len(body)) + body


def repeat(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Play the rounds, then wait for the end."""
    options = spec.workload.options
    repeater = Repeater(spec, journal, stop)
    for number in range(int(options["repeated_rounds"])):
        if stop.asked():
            return
        repeater.round(number)
        stop.wait(int(options.get("repeated_every_ms", EVERY_MS)) / 1000)
    while not stop.asked():
        stop.wait(0.2)


if __name__ == "__main__":
    run_client(repeat)
