"""The transactions of one producer, journaled: begin, records, offsets, end.

A commit that was sent and did not succeed is `unknown`, whatever follows, because it may have been
executed. A transaction without a sent commit is never committed; if a part of it failed, `error` of
its abort says why.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from urteil.chaos.waiting import until
from urteil.harness.clients.libraries.confluent_producer import name_of, offset_of
from urteil.harness.clients.libraries.java_transactions import JavaProducer
from urteil.harness.clients.libraries.unreported_attempts import completion_without_attempts
from urteil.harness.clients.payload import Encoder
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.clients.transactions.producer_factory import producer_factory
from urteil.harness.evidence.journal import (
    Commit,
    CommitEntry,
    Committed,
    Fail,
    Info,
    JournalWriter,
    Ok,
    Send,
    TxnBegin,
    TxnCommit,
    TxnEnd,
)

CALL_S = 5.0
GIVE_UP_S = 10.0
RETRY_S = 0.1
READY_RETRY_S = 0.2
FENCED_WAIT_S = 1.0
HUNG = "_HUNG"
FENCED = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
AS_COMMIT = {"committed": "ok", "aborted": "fail", "fenced": "fail", "unknown": "info"}
"""The outcome of a transaction's offset commit, by the outcome of the transaction."""


@dataclass(slots=True)
class OpenTransaction:
    """The open transaction."""

    number: int
    commit: int | None = None


class Transactions:
    """One transaction after another. Each `begin` is followed by `end`. Either may lose the
    producer; then `ensure_ready` creates another one."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._create = producer_factory(spec)
        self._journal = journal
        self._encoder = Encoder(spec.run, spec.client, spec.workload.value_bytes)
        self._kafka: Producer | JavaProducer | None = None
        self._previous: Producer | JavaProducer | None = None
        self._hung = False
        self._init_ns = (0, 0)
        self._txn: OpenTransaction | None = None
        self._txns = self._ops = self._commits = self._open = 0
        self._failed: str | None = None

    def run(self, stop: Stop, write: Callable[[int], bool]) -> None:
        """Run transactions until the stop is requested. `write` fills the one of this number and
        returns whether to commit it. After a lost producer the client waits for a moment: another
        one with its transactional id may have fenced it."""
        while not stop.is_set():
            if not self.ensure_ready():
                stop.wait(READY_RETRY_S)
                continue
            number = self.begin()
            outcome = "fenced" if number is None else self.end(commit=write(number))
            if outcome in ("fenced", "unknown"):
                stop.wait(FENCED_WAIT_S)

    def ensure_ready(self) -> bool:
        """Create an initialised producer if there is none. A failure is journaled as a transaction
        that was aborted before it began."""
        if self._kafka is not None:
            return True
        began_ns = time.monotonic_ns()
        kafka = self._create()
        try:
            kafka.init_transactions(CALL_S)
        except KafkaException as error:
            self._txns += 1
            self._journal.write(TxnBegin(self._txns, began_ns, None, None))
            self._note_end(self._txns, "aborted", name_of(error))
            return False
        self._kafka, self._init_ns = kafka, (began_ns, time.monotonic_ns())
        return True

    def begin(self) -> int | None:
        """Begin a transaction. Returns its number; None if the producer is lost."""
        assert self._kafka is not None
        self._txns += 1
        self._failed, self._open = None, 0
        self._hung = False
        self._journal.write(TxnBegin(self._txns, time.monotonic_ns(), *self._init_ns))
        try:
            self._kafka.begin_transaction()
        except KafkaException as error:
            self._note_end(self._txns, *self._give_up(error, commit_sent=False))
            return None
        self._txn = OpenTransaction(self._txns)
        return self._txns

    def send(self, topic: str, partition: int, key: str, source: str | None = None) -> bool:
        """Send a record in the transaction. False if the library rejected it."""
        assert self._kafka is not None
        assert self._txn is not None
        op, self._ops = self._ops, self._ops + 1
        self._open += 1
        now_ms = time.time_ns() // 1_000_000
        value = self._encoder.encode(op, key.encode(), partition, now_ms)
        self._journal.write(
            Send(op, time.monotonic_ns(), topic, partition, key, now_ms, False, self._txn.number,
                 source)
        )  # fmt: skip
        try:
            self._kafka.produce(
                topic, value, key.encode(), partition, timestamp=now_ms,
                on_delivery=partial(self._on_delivery, self._txn.number, op, partition),
            )  # fmt: skip
        except (KafkaException, BufferError) as error:
            self._failed, self._open = name_of(error), self._open - 1
            self._journal.write(
                completion_without_attempts(Fail, op, self._failed, partition, attempts=0)
            )
            return False
        self._process_deliveries()
        return True

    def offsets(self, consumer: Consumer, positions: Mapping[tuple[str, int], int]) -> None:
        """Commit the group's `positions` in the transaction; with confluent-kafka, whose consumer
        does not show its generation to another library."""
        assert isinstance(self._kafka, Producer)
        assert self._txn is not None
        self._commits += 1
        entries = [CommitEntry(*slot, offset, offset) for slot, offset in positions.items()]
        self._txn.commit = self._commits
        self._journal.write(
            Commit(self._commits, time.monotonic_ns(), None, consumer.memberid() or None, entries,
                   self._txn.number)
        )  # fmt: skip
        moved = [TopicPartition(*slot, offset) for slot, offset in positions.items()]
        member = consumer.consumer_group_metadata()
        try:
            _call_with_timeout(
                partial(self._kafka.send_offsets_to_transaction, moved, member, CALL_S)
            )
        except KafkaException as error:
            self._failed = name_of(error)
        except TimeoutError:
            self._hung = True

    def end(self, *, commit: bool) -> str:
        """Commit or abort; a transaction with a failed part is aborted. Returns the outcome."""
        assert self._kafka is not None
        assert self._txn is not None
        txn, self._txn = self._txn, None
        error: str | None = HUNG
        if self._hung:
            outcome = self._drop_producer(HUNG)
        elif self._await_deliveries() and commit:
            self._journal.write(TxnCommit(txn.number, time.monotonic_ns()))
            outcome, error = self._call_until_done(self._kafka.commit_transaction, commit_sent=True)
        else:
            outcome, error = self._call_until_done(self._kafka.abort_transaction, commit_sent=False)
            if self._open or self._failed:
                self._retire_producer()
            error = error or self._failed
        self._note_end(txn.number, outcome, error)
        if txn.commit is not None:
            error_text = error or ("the transaction was aborted" if outcome == "aborted" else None)
            done = Committed(txn.commit, time.monotonic_ns(), AS_COMMIT[outcome], error_text)
            self._journal.write(done)
        return outcome

    def _await_deliveries(self) -> bool:
        """Wait for deliveries, also before an abort: librdkafka sends EndTxn for transactions that
        the coordinator does not know yet, and gets a permanent error (INVALID_TXN_STATE)."""

        def is_decided() -> bool:
            self._process_deliveries(RETRY_S)
            return not self._open or self._failed is not None

        if self._open and not self._failed:
            until(is_decided, deadline_s=CALL_S, poll_s=0.0)
        return not self._open and not self._failed

    def _call_until_done(self, call: Any, *, commit_sent: bool) -> tuple[str, str | None]:
        """Repeat the call until it has a result. A commit that the library requires to abort is
        aborted, so that the next transaction can begin; its outcome stays unknown."""
        assert self._kafka is not None
        deadline = time.monotonic() + GIVE_UP_S
        first_error: str | None = None
        while True:
            try:
                call(CALL_S)
            except KafkaException as error:
                first_error = first_error or name_of(error)
                if _wants_abort(error) and call != self._kafka.abort_transaction:
                    call = self._kafka.abort_transaction
                elif not _is_retriable(error) or time.monotonic() > deadline:
                    return self._give_up(error, commit_sent=commit_sent)
                time.sleep(RETRY_S)
                continue
            if commit_sent:
                return (
                    ("unknown", first_error)
                    if call == self._kafka.abort_transaction
                    else ("committed", None)
                )
            return "aborted", None

    def _give_up(self, error: KafkaException, *, commit_sent: bool) -> tuple[str, str]:
        """Give up the producer after a permanent error."""
        self._process_deliveries()
        name = name_of(error)
        return self._drop_producer(name, commit_sent=commit_sent), name

    def _drop_producer(self, name: str, *, commit_sent: bool = False) -> str:
        """Give up the producer, but keep a reference until the next one is given up: librdkafka
        2.16 corrupts its heap when a producer is destroyed while several of its threads learn that
        it is fenced."""
        self._previous, self._kafka = self._kafka, None
        return "fenced" if name in FENCED and not commit_sent else "unknown"

    def _retire_producer(self) -> None:
        """Give up the producer after an abort that may have purged records: librdkafka 2.16 gives
        their sequences to the next transaction, and a broker that has the purged records takes
        those for resent ones."""
        self._process_deliveries(RETRY_S)
        if isinstance(self._kafka, Producer):
            self._previous, self._kafka = self._kafka, None

    def _process_deliveries(self, wait_s: float = 0.0) -> None:
        """Process deliveries. The next call raises a fatal error; confluent-kafka 2.16 turns the
        fencing error into a SystemError in `poll` and `flush`."""
        if self._kafka is not None:
            with contextlib.suppress(KafkaException, SystemError):
                self._kafka.poll(wait_s)

    def _note_end(self, number: int, outcome: str, error: str | None) -> None:
        self._journal.write(TxnEnd(number, time.monotonic_ns(), outcome, error))

    def _on_delivery(
        self, txn: int, op: int, partition: int, error: KafkaError | None, delivered: Any
    ) -> None:
        if txn == self._txns:  # purged records of an abort may be reported in the next transaction
            self._open -= 1
            self._failed = error.name() if error is not None else self._failed
        if error is not None:
            self._journal.write(completion_without_attempts(Info, op, error.name(), partition))
            return
        self._journal.write(
            completion_without_attempts(Ok, op, None, delivered.partition(), offset_of(delivered))
        )


def _call_with_timeout(call: Callable[[], object]) -> None:
    """Call `call` in a thread. Raises its exception, and TimeoutError if it does not return:
    librdkafka 2.16 may wait forever for a killed coordinator, whatever its timeout."""
    done: Future[object] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except Exception as error:
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    done.result(GIVE_UP_S)


def _wants_abort(error: KafkaException) -> bool:
    return isinstance(error.args[0], KafkaError) and bool(error.args[0].txn_requires_abort())


def _is_retriable(error: KafkaException) -> bool:
    return isinstance(error.args[0], KafkaError) and bool(error.args[0].retriable())
