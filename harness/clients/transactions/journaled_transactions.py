"""Transactions of one producer of confluent-kafka, journaled: begin, records, offsets, end.

A commit that was asked for and did not return well is `unknown`, whatever came after it: it may
have been carried out. A transaction whose commit was never asked for is never committed; where a
part of it failed, `error` of its abort says why.
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

from urteil.harness.clients.payload import Encoder
from urteil.harness.clients.producers.confluent_producer import name_of, offset_of, producer_config
from urteil.harness.clients.spec import ClientSpec, transaction_timeout_ms, transactional_id
from urteil.harness.clients.unreported_attempts import ended
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
HUNG = "_HUNG"
FENCED = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
AS_COMMIT = {"committed": "ok", "aborted": "fail", "fenced": "fail", "unknown": "info"}
"""What became of offsets in a transaction, by what became of the transaction."""


@dataclass(slots=True)
class Open:
    """The transaction under way."""

    number: int
    commit: int | None = None


class Transactions:
    """One transaction after the other. Whoever calls `begin` calls `end`; both may find that the
    producer is gone, and the next `ready` makes another one."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        load = spec.workload
        timeout_ms = transaction_timeout_ms(load)
        self._config = producer_config(spec) | {
            "transactional.id": transactional_id(spec),
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": min(load.delivery_timeout_ms, timeout_ms),
            "error_cb": _leave_to_the_call,
        }
        self._journal = journal
        self._encoder = Encoder(spec.run, spec.client, load.value_bytes)
        self._kafka: Producer | None = None
        self._gone: Producer | None = None
        self._hung = False
        self._init_ns = (0, 0)
        self._txn: Open | None = None
        self._txns = self._ops = self._commits = self._open = 0
        self._failed: str | None = None

    def ready(self) -> bool:
        """Whether there is an initialised producer; makes one where there is none. Where that
        fails, it is a transaction that was aborted before it began."""
        if self._kafka is not None:
            return True
        began_ns = time.monotonic_ns()
        kafka = Producer(self._config)
        try:
            kafka.init_transactions(CALL_S)
        except KafkaException as refused:
            self._txns += 1
            self._journal.write(TxnBegin(self._txns, began_ns, None, None))
            self._over(self._txns, "aborted", name_of(refused))
            return False
        self._kafka, self._init_ns = kafka, (began_ns, time.monotonic_ns())
        return True

    def begin(self) -> int | None:
        """The new transaction's number; None when the producer is gone."""
        assert self._kafka is not None
        self._txns += 1
        self._failed, self._open = None, 0
        self._hung = False
        self._journal.write(TxnBegin(self._txns, time.monotonic_ns(), *self._init_ns))
        try:
            self._kafka.begin_transaction()
        except KafkaException as error:
            self._over(self._txns, *self._lost(error, asked=False))
            return None
        self._txn = Open(self._txns)
        return self._txns

    def send(self, topic: str, partition: int, key: str, source: str | None = None) -> bool:
        """Send a record within the transaction; False when the library refused to take it."""
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
            self._journal.write(ended(Fail, op, self._failed, partition, attempts=0))
            return False
        self._take_deliveries()
        return True

    def offsets(self, consumer: Consumer, positions: Mapping[tuple[str, int], int]) -> None:
        """Let the consumer's group move to `positions` with the transaction."""
        assert self._kafka is not None
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
            _in_time(partial(self._kafka.send_offsets_to_transaction, moved, member, CALL_S))
        except KafkaException as refused:
            self._failed = name_of(refused)
        except TimeoutError:
            self._hung = True

    def end(self, *, commit: bool) -> str:
        """Commit, or abort; one of which a part failed is aborted. What came of it."""
        assert self._kafka is not None
        assert self._txn is not None
        txn, self._txn = self._txn, None
        error: str | None = HUNG
        if self._hung:
            outcome = self._drop(HUNG)
        elif self._all_arrived() and commit:
            self._journal.write(TxnCommit(txn.number, time.monotonic_ns()))
            outcome, error = self._carry_out(self._kafka.commit_transaction, asked=True)
        else:
            outcome, error = self._carry_out(self._kafka.abort_transaction, asked=False)
            error = error or self._failed
        self._over(txn.number, outcome, error)
        if txn.commit is not None:
            told = error or ("the transaction was aborted" if outcome == "aborted" else None)
            done = Committed(txn.commit, time.monotonic_ns(), AS_COMMIT[outcome], told)
            self._journal.write(done)
        return outcome

    def _all_arrived(self) -> bool:
        """Also before an abort: librdkafka ends transactions that its coordinator does not know of
        yet, and is refused for good (INVALID_TXN_STATE)."""
        deadline = time.monotonic() + CALL_S
        while self._open and not self._failed and time.monotonic() < deadline:
            self._take_deliveries(RETRY_S)
        return not self._open and not self._failed

    def _carry_out(self, call: Any, *, asked: bool) -> tuple[str, str | None]:
        """Ask until there is an answer. A commit that the library wants aborted is aborted, so that
        the next transaction can begin, and stays unknown."""
        assert self._kafka is not None
        deadline = time.monotonic() + GIVE_UP_S
        told: str | None = None
        while True:
            try:
                call(CALL_S)
            except KafkaException as error:
                told = told or name_of(error)
                if _wants_abort(error) and call != self._kafka.abort_transaction:
                    call = self._kafka.abort_transaction
                elif not _passes(error) or time.monotonic() > deadline:
                    return self._lost(error, asked=asked)
                time.sleep(RETRY_S)
                continue
            if asked:
                return (
                    ("unknown", told)
                    if call == self._kafka.abort_transaction
                    else ("committed", None)
                )
            return "aborted", None

    def _lost(self, error: KafkaException, *, asked: bool) -> tuple[str, str]:
        """The producer is of no use any more."""
        self._take_deliveries()
        name = name_of(error)
        return self._drop(name, asked=asked), name

    def _drop(self, name: str, *, asked: bool = False) -> str:
        """Let go of the producer, but keep it until the next one goes: librdkafka 2.16 corrupts its
        heap when one is destroyed while several of its threads hear that it is shut out."""
        self._gone, self._kafka = self._kafka, None
        return "fenced" if name in FENCED and not asked else "unknown"

    def _take_deliveries(self, wait_s: float = 0.0) -> None:
        """A fatal error is told by the next call that does something. confluent-kafka 2.16 makes a
        SystemError of the one that shuts a producer out, in `poll` as in `flush`."""
        if self._kafka is not None:
            with contextlib.suppress(KafkaException, SystemError):
                self._kafka.poll(wait_s)

    def _over(self, number: int, outcome: str, error: str | None) -> None:
        self._journal.write(TxnEnd(number, time.monotonic_ns(), outcome, error))

    def _on_delivery(
        self, txn: int, op: int, partition: int, error: KafkaError | None, got: Any
    ) -> None:
        if txn == self._txns:  # what an abort purged may be told in the next transaction
            self._open -= 1
            self._failed = error.name() if error is not None else self._failed
        if error is not None:
            self._journal.write(ended(Info, op, error.name(), partition))
            return
        self._journal.write(ended(Ok, op, None, got.partition(), offset_of(got)))


def _in_time(call: Callable[[], object]) -> None:
    """Raises what `call` does, and TimeoutError when it does not come back: librdkafka 2.16 may
    wait for ever for a coordinator that was killed, whatever timeout it was given."""
    done: Future[object] = Future()

    def run() -> None:
        try:
            done.set_result(call())
        except Exception as error:
            done.set_exception(error)

    Thread(target=run, daemon=True).start()
    done.result(GIVE_UP_S)


def _leave_to_the_call(_error: KafkaError) -> None:
    """Without a callback a fatal error is raised in the middle of others' callbacks."""


def _wants_abort(error: KafkaException) -> bool:
    return isinstance(error.args[0], KafkaError) and bool(error.args[0].txn_requires_abort())


def _passes(error: KafkaException) -> bool:
    return isinstance(error.args[0], KafkaError) and bool(error.args[0].retriable())
