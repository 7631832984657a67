"""A client whose requests are delayed on their way: EndTxn, Produce.

Its EndTxn ends the next transaction (KAFKA-17754), but not one of its successor (KIP-98); its
Produce must not be taken (KIP-890); nor may it go on with a transaction that has timed out.

    python -m urteil.harness.clients.transactions.delayed_requests SPEC.json

It asks for the end of a transaction on one connection, where the request is held back as a slow
network would, gives up on it, asks again on another one and is answered. While its next transaction
is open, the first request arrives. 3.9's protocol cannot tell which transaction it meant: id and
epoch are the same. In turn an abort arrives late, after which the rest of the transaction is
committed as if nothing had happened, and a commit, after which the transaction that it committed is
aborted in vain. A record of a transaction that was aborted arrives while the next one is open,
which does not have its partition: whoever takes it opens a transaction that nobody ends. Nothing
else is bent: each request is one that a producer may send.
"""

from __future__ import annotations

import contextlib
import time

from urteil.harness.clients.client_main import Stop, run_client
from urteil.harness.clients.payload import Encoder
from urteil.harness.clients.spec import ClientSpec, transaction_timeout_ms, transactional_id
from urteil.harness.evidence.journal import (
    Fail,
    Info,
    JournalWriter,
    Ok,
    Send,
    TxnBegin,
    TxnCommit,
    TxnEnd,
)
from urteil.harness.protocol.connection import Connection
from urteil.harness.protocol.transaction_requests import (
    ADD_PARTITIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    Producer,
    add_partitions_request,
    batch,
    end_txn_request,
    init_producer_id_request,
    produce_request,
    read_base_offset,
    read_error,
    read_init_producer_id,
    write_markers_request,
)

EVERY_S = 0.5
OVERDUE_MS = 1_000
OVERDUE_S = 6.0
TAKEOVER_S = 0.2
REST_S = 2.5
FIRST_EPOCH, OLDER_EPOCH = 0, -1
"""Of a coordinator: the first there is, and one before any."""
RETRY_S = 0.05
DEADLINE_S = 10.0
PASSING = frozenset({3, 5, 6, 7, 14, 15, 16, 51})
"""Errors that pass: no leader or coordinator here or not yet, a transaction that is being ended."""


TAKEN, REFUSED = "error 0", "error 48"
"""The latter is INVALID_TXN_STATE: nobody says that the transaction has its partition."""
NOT_HERE = ("error 3", "error 6")
SHUT_OUT = ("error 47", "error 90")
"""INVALID_PRODUCER_EPOCH, PRODUCER_FENCED: any other answer, or none, leaves the outcome open."""


class Refused(Exception):
    """An answer that does not pass by waiting, or none in time."""


class LateEnd:
    """The client; one round is two transactions."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._spec = spec
        self._journal = journal
        self._encoder = Encoder(spec.run, spec.client, spec.workload.value_bytes)
        self._producer = Producer(transactional_id(spec))
        self._init_ns = (0, 0)
        self._txns = self._ops = 0
        topic = spec.topics[0]
        self._first, self._second = ((topic.name, p % topic.partitions) for p in (0, 1))

    def round(self, *, commit: bool) -> None:
        """Two transactions; the end of the first arrives in the second."""
        if self._producer.epoch < 0:
            self._initialise()
        late = end_txn_request(self._producer, commit=commit)
        number = self._begin()
        self._send(number, self._first)
        if commit:
            self._journal.write(TxnCommit(number, time.monotonic_ns()))
        self._ask(END_TXN, late)
        self._over(number, "committed" if commit else "aborted", None)
        self._next(late, commit=commit)

    def _next(self, late: bytes, *, commit: bool) -> None:
        number = self._begin()
        self._send(number, self._first)
        late_ns = time.monotonic_ns()
        self._ask(END_TXN, late)
        if commit:
            self._abort(number, late_ns)
            return
        self._send(number, self._second)
        self._journal.write(TxnCommit(number, time.monotonic_ns()))
        self._ask(END_TXN, end_txn_request(self._producer, commit=True))
        self._over(number, "committed", late_ns)

    def _abort(self, number: int, late_ns: int) -> None:
        """It was committed in the meantime: the abort is refused, and the producer is of no use."""
        try:
            self._ask(END_TXN, end_txn_request(self._producer, commit=False))
        except Refused as refused:
            self._producer = Producer(self._producer.transactional_id)
            ended = TxnEnd(number, time.monotonic_ns(), "unknown", str(refused), late_ns)
            self._journal.write(ended)
            return
        self._over(number, "aborted", late_ns)

    def produce_late(self) -> None:
        """A record of an aborted transaction arrives when the next one is under way elsewhere."""
        if self._producer.epoch < 0:
            self._initialise()
        number = self._begin()
        self._send(number, self._first)
        self._ask(ADD_PARTITIONS, add_partitions_request(self._producer, *self._second))
        op, _, late = self._record(number, self._second)
        self._ask(END_TXN, end_txn_request(self._producer, commit=False))
        self._over(number, "aborted", None)
        number = self._begin()
        self._send(number, self._first)
        was_taken = self._deliver(op, late)
        self._journal.write(TxnCommit(number, time.monotonic_ns()))
        self._ask(END_TXN, end_txn_request(self._producer, commit=True))
        self._over(number, "committed", None)
        if was_taken:
            self._producer = Producer(self._producer.transactional_id)

    def outlive(self) -> None:
        """A transaction that lasts longer than its timeout: the coordinator has to shut its
        producer out when it aborts it, or what follows would be another transaction."""
        self._renew(OVERDUE_MS)
        number = self._begin()
        self._send(number, self._first)
        deadline, outcome, told, asked = time.monotonic() + OVERDUE_S, "unknown", None, False
        try:
            while time.monotonic() < deadline:  # which changes nothing in an open transaction
                self._ask(ADD_PARTITIONS, add_partitions_request(self._producer, *self._first))
                time.sleep(RETRY_S)
            self._send(number, self._second)
            asked = True
            self._journal.write(TxnCommit(number, time.monotonic_ns()))
            self._ask(END_TXN, end_txn_request(self._producer, commit=True))
            outcome = "committed"
        except Refused as refused:
            told = str(refused)
            if told in SHUT_OUT and not asked:
                outcome = "fenced"
        self._journal.write(TxnEnd(number, time.monotonic_ns(), outcome, told, None))
        self._producer = Producer(self._producer.transactional_id)

    def end_shut_out(self) -> None:
        """The commit of a producer that was shut out arrives in its successor's transaction, and so
        do a record of it, a marker of its epoch, and one of a coordinator that is none any more."""
        self._renew()
        number, old = self._begin(), self._producer
        self._send(number, self._first)
        late = end_txn_request(old, commit=True)
        op, _, record = self._record(number, self._second)
        self._renew()
        self._over(number, "aborted", None)
        number = self._begin()
        self._send(number, self._first)
        with contextlib.suppress(Refused):
            self._ask(END_TXN, late)
        self._mark(old, FIRST_EPOCH)
        self._mark(self._producer, OLDER_EPOCH)
        self._send(number, self._second)
        self._deliver(op, record)
        self._ask(END_TXN, end_txn_request(self._producer, commit=False))
        self._over(number, "aborted", None)

    def rest(self, stop: Stop) -> None:
        """A producer does nothing for a moment: nobody may forget of it by then."""
        self._renew()
        stop.wait(REST_S)
        number, outcome, told = self._begin(), "aborted", None
        try:
            self._ask(ADD_PARTITIONS, add_partitions_request(self._producer, *self._first))
            self._ask(END_TXN, end_txn_request(self._producer, commit=False))
        except Refused as refused:
            outcome, told = "unknown", str(refused)
        self._journal.write(TxnEnd(number, time.monotonic_ns(), outcome, told, None))

    def _mark(self, producer: Producer, coordinator_epoch: int) -> None:
        """A commit of what is open in its first partition, to whoever leads that."""
        request = write_markers_request(
            producer, *self._first, commit=True, coordinator_epoch=coordinator_epoch
        )
        for address in self._spec.bootstrap:
            with contextlib.suppress(OSError):
                self._once(address, request)

    def take_over(self) -> None:
        """Another producer of the id, which begins nothing: nobody may have its epoch later."""
        self._renew()
        self._over(self._begin(), "aborted", None)

    def _renew(self, timeout_ms: int | None = None) -> None:
        """Another producer takes over the transactional id, and ends what was open."""
        self._producer = Producer(self._producer.transactional_id)
        self._initialise(timeout_ms)

    def _deliver(self, op: int, late: bytes) -> bool:
        """To whoever leads its partition, once; whether it was taken."""
        topic, partition = self._second
        told, offset = "no answer", None
        for address in self._spec.bootstrap:
            try:
                answer = self._once(address, late)
            except OSError as failure:
                told = type(failure).__name__
                break
            told = f"error {read_error(PRODUCE, answer, topic)}"
            if told == TAKEN:
                offset = read_base_offset(answer, topic)
            if told not in NOT_HERE:
                break
        outcome = Ok if told == TAKEN else Fail if told == REFUSED else Info
        error = None if told == TAKEN else told
        self._journal.write(
            outcome(op, time.monotonic_ns(), error, -1, outcome is Info, partition, offset, None,
                    None, None, None, None)
        )  # fmt: skip
        return told == TAKEN

    def _initialise(self, timeout_ms: int | None = None) -> None:
        began_ns = time.monotonic_ns()
        timeout_ms = timeout_ms or transaction_timeout_ms(self._spec.workload)
        request = init_producer_id_request(self._producer.transactional_id, timeout_ms)
        answer = self._ask(INIT_PRODUCER_ID, request)
        self._producer.producer_id, self._producer.epoch = read_init_producer_id(answer)
        self._init_ns = (began_ns, time.monotonic_ns())

    def _begin(self) -> int:
        self._txns += 1
        one = self._producer
        self._journal.write(
            TxnBegin(self._txns, time.monotonic_ns(), *self._init_ns, one.producer_id, one.epoch)
        )
        return self._txns

    def _over(self, number: int, outcome: str, late_ns: int | None) -> None:
        self._journal.write(TxnEnd(number, time.monotonic_ns(), outcome, None, late_ns))

    def _send(self, txn: int, slot: tuple[str, int]) -> None:
        """One record, its partition told to the coordinator first."""
        one = self._producer
        topic, partition = slot
        self._ask(ADD_PARTITIONS, add_partitions_request(one, topic, partition))
        op, now_ms, request = self._record(txn, slot)
        sequence = one.sequences.get(slot, 0)
        told = (None, one.producer_id, one.epoch, sequence, now_ms)
        try:
            answer = self._ask(PRODUCE, request)
        except Refused as refused:
            now_ns = time.monotonic_ns()
            self._journal.write(Info(op, now_ns, str(refused), -1, True, partition, None, *told))
            raise
        one.sequences[slot] = sequence + 1
        offset = read_base_offset(answer, topic)
        self._journal.write(Ok(op, time.monotonic_ns(), None, -1, True, partition, offset, *told))

    def _record(self, txn: int, slot: tuple[str, int]) -> tuple[int, int, bytes]:
        """The next record, journaled as sent: its number, its time and the request."""
        one, op, self._ops = self._producer, self._ops, self._ops + 1
        topic, partition = slot
        key, now_ms = f"late{partition}", time.time_ns() // 1_000_000
        value = self._encoder.encode(op, key.encode(), partition, now_ms)
        content = batch(one, one.sequences.get(slot, 0), key.encode(), value, now_ms)
        self._journal.write(
            Send(op, time.monotonic_ns(), topic, partition, key, now_ms, False, txn)
        )
        return op, now_ms, produce_request(one, topic, partition, content)

    def _ask(self, api: tuple[int, int], request: bytes) -> bytes:
        """Ask all brokers in turn until one answers for good. Refused as it says."""
        deadline = time.monotonic() + DEADLINE_S
        told = "no answer"
        while time.monotonic() < deadline:
            for address in self._spec.bootstrap:
                try:
                    answer = self._once(address, request)
                except OSError as failure:
                    told = type(failure).__name__
                    continue
                error = read_error(api, answer, self._first[0])
                if not error:
                    return answer
                told = f"error {error}"
                if error not in PASSING:
                    raise Refused(told)
            time.sleep(RETRY_S)
        raise Refused(told)

    def _once(self, address: str, request: bytes) -> bytes:
        wire = Connection(address, self._spec.workload.request_timeout_ms / 1000)
        try:
            return wire.call(request)
        finally:
            wire.close()


def end_late(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """`rests`, `takeovers`, `overdue_txns`, `late_produces`, and `delayed_ends` rounds, an abort
    and a commit in turn; then wait for the end."""
    client = LateEnd(spec, journal)
    for _ in range(int(spec.workload.options.get("rests", "0"))):
        if stop.asked():
            return
        with contextlib.suppress(Refused):
            client.rest(stop)
    for _ in range(int(spec.workload.options.get("takeovers", "0"))):
        if stop.asked():
            return
        with contextlib.suppress(Refused):
            client.take_over()
        stop.wait(TAKEOVER_S)
    for _ in range(int(spec.workload.options.get("overdue_txns", "0"))):
        if stop.asked():
            return
        client.outlive()
        client.end_shut_out()
    for _ in range(int(spec.workload.options.get("late_produces", "0"))):
        if stop.asked():
            return
        client.produce_late()
        stop.wait(EVERY_S)
    for number in range(int(spec.workload.options.get("delayed_ends", "0"))):
        if stop.asked():
            return
        client.round(commit=number % 2 == 1)
        stop.wait(EVERY_S)
    while not stop.asked():
        stop.wait(0.2)


if __name__ == "__main__":
    run_client(end_late)
