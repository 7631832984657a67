"""A transactional client of lists: it appends to several partitions and reads several, mixed.

    python -m urteil.harness.clients.transactions.list_append SPEC.json

A partition is a list, and its offsets are the order of it. A transaction chooses up to `spread`
partitions, and then appends to one of them or reads one of them, `txn_ops` times at most. A read
asks the leader for the end of committed records and polls until it is there; its position is what
it saw of the list. A share of transactions (`aborts`) is aborted on purpose. Append n is due
n / rate seconds after the start. These histories show which isolation transactions had
(Kingsbury, Alvaro, Elle, 2020).
"""

from __future__ import annotations

import random
import time
from typing import Annotated

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from msgspec import Meta

from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage, Writes
from urteil.harness.clients.libraries import CONFLUENT, JAVA
from urteil.harness.clients.libraries.confluent_consumer import Reader, Slot
from urteil.harness.clients.libraries.confluent_producer import connection_config
from urteil.harness.clients.options import (
    FetchOptions,
    OutcomeOptions,
    SendOptions,
    TransactionOptions,
    WorkloadOptions,
)
from urteil.harness.clients.producers.produced_records import KeyChooser
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.clients.transactions.journaled_transactions import Transactions
from urteil.harness.evidence.journal import JournalWriter, OffsetAnswer
from urteil.harness.scenario import Scenario

POLL_S = 0.1
LOOKUP_S = 5.0
READ_S = 0.5
"""The longest time that a read waits for records before the end: their broker may be away."""


class ListOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    txn_ops: Annotated[
        int,
        Meta(ge=1, le=10_000, description="The largest number of appends and reads together."),
    ] = 6
    spread: Annotated[
        int, Meta(ge=1, le=1_000, description="The largest number of partitions of a transaction.")
    ] = 3
    list_reads: Annotated[
        float, Meta(ge=0, le=1, description="The share of reads among a transaction's operations.")
    ] = 0.4


class ListReader(Reader):
    """Reads partitions up to the end of committed records of that moment."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        super().__init__(spec, journal, {"enable.partition.eof": True})
        self._admin = AdminClient(connection_config(spec))
        self._answers = journal
        self._reached: dict[Slot, int] = {}

    def read(self, stop: Stop, txn: int, slot: Slot) -> None:
        """Poll until the end of `slot` is reached. Other partitions are read as far as polls go."""
        end = self._stable_end(slot)
        deadline = time.monotonic() + READ_S
        while end > self._position(slot) and time.monotonic() < deadline and not stop.is_set():
            self.step(stop, txn, wait_s=POLL_S)

    def _position(self, slot: Slot) -> int:
        return max(self._journal.position.get(slot, 0), self._reached.get(slot, 0))

    def _without_ends(self, messages: list[Message]) -> list[Message]:
        """The messages that are records or errors; ends of partitions are noted."""
        kept = []
        for message in messages:
            error = message.error()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                slot = str(message.topic()), int(message.partition() or 0)
                self._reached[slot] = int(message.offset() or 0)
            else:
                kept.append(message)
        return kept

    def _stable_end(self, slot: Slot) -> int:
        """The end of committed records, journaled as an answer; 0 if no leader returned one."""
        asked = {TopicPartition(*slot): OffsetSpec.latest()}  # type: ignore[no-untyped-call]
        committed = IsolationLevel.READ_COMMITTED
        invoke_ns = time.monotonic_ns()
        try:
            futures = self._admin.list_offsets(
                asked, isolation_level=committed, request_timeout=LOOKUP_S
            )
            (answer,) = [future.result(LOOKUP_S) for future in futures.values()]
        except (KafkaException, TimeoutError):
            return 0
        offset, epoch = int(answer.offset), answer.leader_epoch
        if offset < 0:  # librdkafka's result where the partition has no leader
            return 0
        self._answers.write(
            OffsetAnswer(invoke_ns, time.monotonic_ns(), "stable", *slot, offset, None, None, None,
                         epoch)
        )  # fmt: skip
        return offset


class ListAppender:
    """Runs one transaction after another."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
        self._stop = stop
        self._rate = max(0.1, spec.rate_records_per_s)
        self._options = ListOptions.of(spec.workload)
        self._aborts = OutcomeOptions.of(spec.workload).aborts
        self._random = random.Random(spec.seed)
        self._slots = [(topic.name, p) for topic in spec.topics for p in range(topic.partitions)]
        self._keys = KeyChooser(spec.workload.keys, len(self._slots), spec.seed)
        self._transactions = Transactions(spec, journal)
        self._reader = ListReader(spec, journal)
        self._appended, self._began = 0, 0.0

    def run(self) -> None:
        """Run transactions until the stop is requested."""
        self._reader.start(self._stop)
        self._began = time.monotonic()
        self._transactions.run(self._stop, self._fill)
        self._reader.close()

    def _fill(self, txn: int) -> bool:
        """Appends and reads of one transaction. Returns whether it is to be committed."""
        chosen = self._random.sample(
            range(len(self._slots)), min(self._options.spread, len(self._slots))
        )
        for _ in range(self._random.randint(1, self._options.txn_ops)):
            number = self._random.choice(chosen)
            if self._random.random() < self._options.list_reads:
                self._reader.read(self._stop, txn, self._slots[number])
            elif not self._append(number):
                break
        return self._random.random() >= self._aborts

    def _append(self, number: int) -> bool:
        self._appended += 1
        self._stop.wait(max(0.0, self._began + self._appended / self._rate - time.monotonic()))
        return self._transactions.send(*self._slots[number], self._keys.key(number))


def append(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    ListAppender(spec, journal, stop).run()


def _count(scenario: Scenario) -> int:
    load = scenario.workload
    return load.producers if load.kind == "list-append" else 0


KIND = ClientKind(
    name="list_append",
    about="Appends to several partitions and reads several up to their ends, in transactions.",
    stage=Stage.LOAD,
    judged_by=("g1c", "g1c_realtime", "fractured_read", "stale_end"),
    prefix="l",
    count=_count,
    work=append,
    options=(ListOptions, OutcomeOptions, TransactionOptions, SendOptions, FetchOptions),
    libraries=(CONFLUENT, JAVA),
    writes=Writes.IN_TRANSACTIONS,
    has_rate=True,
)

if __name__ == "__main__":
    run_client(KIND)
