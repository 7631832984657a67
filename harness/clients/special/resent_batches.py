"""A client that loses responses: it resends written batches, one too early, and one too long.

    python -m urteil.harness.clients.special.resent_batches SPEC.json

kafka-python has one open batch for each partition; the Java client and librdkafka have five. So the
requests are packed by hand. Each round is five batches of an idempotent producer to one partition.
First the second batch alone, as if the first had been rejected: the broker must reject it. Then all
five on one connection, and all five again on another one, as after lost responses: each must get
the same response as before and be in the log once. Then one more batch, which begins as the last of
the five and has a new record behind it: it is neither a duplicate nor in order, and the broker must
reject it. If the first batch is out of order, the broker
has lost the producer's state: the producer increments its epoch and sends all batches again, as the
Java client does (KIP-360). The sequences of a new producer begin shortly before the largest one; a
broker without state must accept that, and continue at 0.

With the option `repeated_late` another producer takes over after the first round of each partition,
and the first rounds are resent again and again until the end: a broker must keep the state of an
idle producer, whatever happens to its log. A round whose first record a leader has forgotten is
then given up: after a kill, Apache Kafka knows only the last batch of each producer, and batches
that are resent with another epoch are written twice (docs/results/finds.md).
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from urteil.chaos.capabilities import IDEMPOTENCE
from urteil.chaos.waiting import until
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage, Writes
from urteil.harness.clients.options import WorkloadOptions
from urteil.harness.clients.payload import Encoder
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import Fail, Info, JournalWriter, Ok, Send
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.produce_requests import (
    NOT_HERE,
    produce_request,
    read_produce_response,
    record_batch,
    single_record_batch,
)

BATCHES = 5
LAST_SEQUENCE = (1 << 31) - 1
FIRST_SEQUENCE = LAST_SEQUENCE - 2 * BATCHES - 1
"""The third round of a partition wraps around."""
INIT_PRODUCER_ID = 22
RETRY_S = 0.1
OPERATIONS = BATCHES + 1
"""The records of a round."""
OUT_OF_ORDER, DUPLICATE_SEQUENCE = 45, 46
REJECTIONS = {
    OUT_OF_ORDER: "OUT_OF_ORDER_SEQUENCE_NUMBER",
    DUPLICATE_SEQUENCE: "DUPLICATE_SEQUENCE_NUMBER",
}
LATE_EVERY = 4
"""Number of rounds from one resend of the oldest batches to the next."""

ProduceResult = tuple[int, int]


class ResentBatchOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    repeated_rounds: Annotated[
        int, Meta(ge=0, le=1_000_000, description="The number of rounds of resent batches.")
    ] = 0
    repeated_every_ms: Annotated[
        int, Meta(ge=0, le=3_600_000, description="The time between two rounds of resent batches.")
    ] = 500
    repeated_late: Annotated[
        bool,
        Meta(
            description="The first batches are resent until the end, after another producer has "
            "taken over."
        ),
    ] = False


Slot = tuple[str, int]
"""A topic and a partition of it."""


@dataclass(slots=True)
class Batch:
    """One record of a round and its response."""

    op: int
    key: bytes
    value: bytes
    timestamp_ms: int
    sent: int = 0
    result: ProduceResult | None = None


class BatchResender:
    """Sends rounds and journals the outcome of each record."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        self._spec = spec
        self._journal = journal
        self._stop = stop
        self._encoder = Encoder(spec.run, spec.client, spec.workload.value_bytes)
        self._sequences: dict[Slot, int] = {}
        self._first_sequence = FIRST_SEQUENCE
        self._producer_id = self._epoch = -1
        self._timeout_ms = spec.workload.request_timeout_ms
        self._is_late = ResentBatchOptions.of(spec.workload).repeated_late
        self._has_successor = False
        self._oldest: dict[Slot, list[bytes]] = {}

    def run_round(self, number: int) -> None:
        """Five new records to one partition. The outcome of a record without a response in time is
        unknown."""
        slots = self._spec.partitions()
        slot = slots[number % len(slots)]
        first = number * OPERATIONS
        batches = [self._begin(op, slot) for op in range(first, first + BATCHES)]

        def are_settled() -> bool:
            if self._attempt(slot, batches):
                self._remember(slot, batches)
                return True
            if self._is_late and _is_forgotten(batches):
                self._give_up(batches)
                return True
            return False

        deadline_s = self._spec.workload.delivery_timeout_ms / 1000
        if not until(are_settled, deadline_s=deadline_s, poll_s=RETRY_S, stop=self._stop):
            self._producer_id = -1  # their outcome is unknown: use a new producer
        elif batches[-1].result is not None:
            self._send_too_long(slot, batches[-1], first + BATCHES)
        self._sequences[slot] = self._sequence(slot, BATCHES)
        for batch in batches:
            self._note(batch, slot[1])
        self._send_oldest(number)

    def _send_too_long(self, slot: Slot, written: Batch, op: int) -> None:
        """Send a batch that begins with a written record and goes on with a new one."""
        new = self._begin(op, slot)
        data = record_batch(
            [(written.key, written.value), (new.key, new.value)],
            new.timestamp_ms,
            producer_id=self._producer_id,
            epoch=self._epoch,
            sequence=self._sequence(slot, BATCHES - 1),
        )
        frame = produce_request(op, *slot, data, self._timeout_ms)
        for error, base_offset in self._ask_leader(slot, [frame], [new]):
            new.result = (error, base_offset + 1)
        self._note(new, slot[1], is_too_long=True)

    def _give_up(self, batches: Sequence[Batch]) -> None:
        """Treat rejected batches as unknown, and use a new producer."""
        self._producer_id = -1
        for batch in batches:
            if batch.result is not None and batch.result[0] == OUT_OF_ORDER:
                batch.result = None

    def _remember(self, slot: Slot, batches: Sequence[Batch]) -> None:
        """Keep the first round of each partition. When all partitions have one, their producer has
        written its last batch."""
        if self._is_late and slot not in self._oldest:
            self._oldest[slot] = [
                self._frame(slot, batch, self._sequence(slot, n)) for n, batch in enumerate(batches)
            ]

    def _send_oldest(self, number: int) -> None:
        """Send the oldest batches to every broker. Nothing is journaled: they were acknowledged
        before."""
        if len(self._oldest) < len(self._spec.partitions()):
            return
        if not self._has_successor:
            self._has_successor, self._producer_id = True, -1
        if number % LATE_EVERY:
            return
        for (topic, _), frames in self._oldest.items():
            for address in self._spec.bootstrap:
                try:
                    self._request(address, frames, topic)
                except OSError:
                    continue

    def _begin(self, op: int, slot: Slot) -> Batch:
        topic, partition = slot
        key, timestamp_ms = f"repeated{partition}", time.time_ns() // 1_000_000
        value = self._encoder.encode(op, key.encode(), partition, timestamp_ms)
        self._journal.write(Send(op, time.monotonic_ns(), topic, partition, key, timestamp_ms))
        return Batch(op, key.encode(), value, timestamp_ms)

    def _attempt(self, slot: Slot, batches: Sequence[Batch]) -> bool:
        """Send one batch too early, then all batches twice. True if all are acknowledged."""
        if self._producer_id < 0 and not self._new_producer():
            return False
        if slot in self._sequences and batches[0].sent == 0:
            self._deliver(slot, batches[:2], [1])
        everything = range(len(batches))
        for _ in range(2):
            self._deliver(slot, batches, everything)
        results = [batch.result[0] if batch.result else -1 for batch in batches]
        if _is_forgotten(batches) and not self._is_late:
            self._epoch += 1
            self._begin_at(0)
        return not any(results)

    def _deliver(self, slot: Slot, batches: Sequence[Batch], indexes: Sequence[int]) -> None:
        """Send some batches of the round on one connection to the leader."""
        chosen = [batches[n] for n in indexes]
        frames = [self._frame(slot, batches[n], self._sequence(slot, n)) for n in indexes]
        results = self._ask_leader(slot, frames, chosen)
        for at, batch in enumerate(chosen):
            batch.result = results[at] if results else None

    def _ask_leader(
        self, slot: Slot, frames: Sequence[bytes], batches: Sequence[Batch]
    ) -> list[ProduceResult]:
        """Send the frames of batches to the brokers in turn until the leader responds. Empty if it
        does not."""
        for address in self._spec.bootstrap:
            for batch in batches:
                batch.sent += 1
            try:
                results = self._request(address, frames, slot[0])
            except OSError:
                continue
            if results[0][0] not in NOT_HERE:
                return results
        return []

    def _frame(self, slot: Slot, batch: Batch, sequence: int) -> bytes:
        data = single_record_batch(
            batch.key,
            batch.value,
            batch.timestamp_ms,
            producer_id=self._producer_id,
            epoch=self._epoch,
            sequence=sequence,
        )
        return produce_request(batch.op, *slot, data, self._timeout_ms)

    def _request(self, address: str, frames: Sequence[bytes], topic: str) -> list[ProduceResult]:
        connection = Connection(address, self._timeout_ms / 1000)
        try:
            return [read_produce_response(result, topic) for result in connection.call_all(frames)]
        finally:
            connection.close()

    def _new_producer(self) -> bool:
        """Get a producer id from any broker; all sequences begin anew."""
        for address in self._spec.bootstrap:
            try:
                connection = Connection(address, self._timeout_ms / 1000)
                try:
                    result = connection.call(init_producer_id())
                finally:
                    connection.close()
            except OSError:
                continue
            error, producer_id, epoch = struct.unpack_from(">hqh", result, 8)
            if error == 0:
                self._producer_id, self._epoch = producer_id, epoch
                self._begin_at(FIRST_SEQUENCE)
                return True
        return False

    def _begin_at(self, sequence: int) -> None:
        """Restart the sequences of all partitions."""
        self._sequences.clear()
        self._first_sequence = sequence

    def _sequence(self, slot: Slot, ahead: int) -> int:
        return (self._sequences.get(slot, self._first_sequence) + ahead) & LAST_SEQUENCE

    def _note(self, batch: Batch, partition: int, *, is_too_long: bool = False) -> None:
        """Journal the outcome. That of a batch which is too long is no judgement of its sequence;
        rejected in its only attempt, it certainly failed."""
        error, offset = batch.result or (-1, -1)
        is_rejected = is_too_long and error in REJECTIONS and batch.sent == 1
        outcome = Ok if error == 0 else Fail if is_rejected else Info
        error_text = REJECTIONS.get(error, f"error {error}")
        if is_too_long:
            error_text = f"too long: {error_text}"
        self._journal.write(
            outcome(batch.op, time.monotonic_ns(), None if error == 0 else error_text,
                    batch.sent, True, partition, offset if error == 0 else None, None,
                    self._producer_id, self._epoch, None, None)
        )  # fmt: skip


def _is_forgotten(batches: Sequence[Batch]) -> bool:
    """Whether a leader knows neither the first batch nor its predecessor."""
    first = batches[0].result
    return first is not None and first[0] == OUT_OF_ORDER


def init_producer_id() -> bytes:
    """The frame of InitProducerId 0 without a transactional id."""
    body = struct.pack(">hhih8shi", INIT_PRODUCER_ID, 0, 0, 8, b"repeater", -1, 60_000)
    return struct.pack(">i", len(body)) + body


def resend_batches(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Send the rounds, then wait for the stop."""
    options = ResentBatchOptions.of(spec.workload)
    repeater = BatchResender(spec, journal, stop)
    for number in range(options.repeated_rounds):
        if stop.is_set():
            return
        repeater.run_round(number)
        stop.wait(options.repeated_every_ms / 1000)
    stop.wait_until_set()


KIND = ClientKind(
    name="repeater",
    about="Sends written batches again, one too early, and one that begins as a written one and "
    "goes on; each must be in the log once.",
    needs=lambda _: (IDEMPOTENCE,),
    stage=Stage.LOAD,
    judged_by=("duplicate",),
    prefix="repeater",
    count=lambda scenario: int(ResentBatchOptions.of(scenario.workload).repeated_rounds > 0),
    work=resend_batches,
    options=(ResentBatchOptions,),
    writes=Writes.IDEMPOTENTLY,
)

if __name__ == "__main__":
    run_client(KIND)
