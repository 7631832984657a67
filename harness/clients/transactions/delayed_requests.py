"""A client whose requests arrive late: EndTxn and Produce.

    python -m urteil.harness.clients.transactions.delayed_requests SPEC.json

The client sends EndTxn on one connection, where it is held back as by a slow network, gives up,
repeats it on another connection and gets a response. The first request arrives while the next
transaction is open. The request does not identify its transaction in the protocol of 3.9, because
id and epoch are the same (KAFKA-17754). Brokers that serve EndTxn 5 (KIP-890) get that version, in
which each transaction has an epoch of its own, and reject the late request. Rounds alternate: a
late abort, after which the rest of the transaction is committed; and a late commit, after which the
abort of the committed transaction fails.

A late EndTxn must not end a transaction of the producer's successor (KIP-98). A late record of an
aborted transaction arrives while the next transaction is open without that partition: a broker that
appends it opens a transaction that no producer ends (KIP-890). A producer must not continue a
transaction that has timed out. Each request is one that a real producer may send.
"""

from __future__ import annotations

import contextlib
import time
from typing import Annotated

import msgspec
from msgspec import Meta

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.chaos.observations import LabFailure
from urteil.chaos.waiting import until
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kind import ClientKind, Stage, Writes
from urteil.harness.clients.options import TransactionOptions, WorkloadOptions
from urteil.harness.clients.payload import Encoder
from urteil.harness.clients.spec import ClientSpec, transaction_timeout_ms, transactional_id
from urteil.harness.clients.stop import Stop
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
from urteil.harness.protocol.served_versions import common_versions, highest_version
from urteil.harness.protocol.transaction_requests import (
    ADD_PARTITIONS,
    END_TXN,
    END_TXN_WITH_EPOCH,
    INIT_PRODUCER_ID,
    PRODUCE,
    WRITE_MARKERS,
    Producer,
    add_partitions_request,
    batch,
    end_txn_request,
    init_producer_id_request,
    produce_request,
    read_base_offset,
    read_error,
    read_init_producer_id,
    read_next_epoch,
    write_markers_request,
)
from urteil.harness.scenario import Scenario, WorkloadSpec

EVERY_S = 0.5
OVERDUE_MS = 1_000
OVERDUE_S = 6.0
TAKEOVER_S = 0.2
REST_S = 2.5
FIRST_EPOCH, OLDER_EPOCH = 0, -1
"""Coordinator epochs: the first one, and one before it."""
RETRY_S = 0.05
DEADLINE_S = 10.0
RETRIABLE = frozenset({3, 5, 6, 7, 14, 15, 16, 51})
"""Retriable errors: no leader or coordinator here or not yet, or a transaction that is being ended.
"""


APPENDED, REFUSED = "error 0", "error 48"
"""The latter is INVALID_TXN_STATE: the transaction does not include the partition."""
NOT_HERE = ("error 3", "error 6")
FENCED = ("error 47", "error 90")
"""INVALID_PRODUCER_EPOCH, PRODUCER_FENCED. With any other response, or none, the outcome is open.
"""


class DelayedRequestOptions(WorkloadOptions, frozen=True):
    """Options of this client."""

    rests: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="The number of transactions that begin 2.5 s after their id was "
            "initialised.",
        ),
    ] = 0
    takeovers: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="The number of times that another producer initialises the id.",
        ),
    ] = 0
    overdue_txns: Annotated[
        int,
        Meta(
            ge=0,
            le=100_000,
            description="The number of transactions that continue beyond their timeout.",
        ),
    ] = 0
    late_produces: Annotated[
        int,
        Meta(ge=0, le=100_000, description="The number of late records of aborted transactions."),
    ] = 0
    delayed_ends: Annotated[
        int, Meta(ge=0, le=100_000, description="The number of late EndTxn requests.")
    ] = 0


def check_partitions(load: WorkloadSpec) -> None:
    """ValueError for late records to a topic with one partition: the transaction in which they
    arrive would include it."""
    if DelayedRequestOptions.of(load).late_produces and load.topics[0].partitions < 2:
        raise ValueError(
            f"late_produces needs a second partition of {load.topics[0].name}: give it two, or "
            "leave the option out"
        )


class RequestFailed(Exception):
    """A response with a permanent error, or none in time."""


class DelayedRequests:
    """The client. One round is two transactions."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._spec = spec
        self._journal = journal
        self._encoder = Encoder(spec.run, spec.client, spec.workload.value_bytes)
        self._producer = Producer(transactional_id(spec))
        self._end_api = END_TXN
        self._init_ns = (0, 0)
        self._txns = self._ops = 0
        topic = spec.topics[0]
        self._first, self._second = ((topic.name, p % topic.partitions) for p in (0, 1))

    def run_round(self, *, commit: bool) -> None:
        """Two transactions; the EndTxn of the first arrives in the second."""
        if self._producer.epoch < 0:
            self._initialise()
            self._end_api = self._choose_end_api()
        late = end_txn_request(self._producer, commit=commit, api=self._end_api)
        number = self._begin()
        self._send(number, self._first)
        if commit:
            self._journal.write(TxnCommit(number, time.monotonic_ns()))
        self._end(late)
        self._note_end(number, "committed" if commit else "aborted", None)
        self._end_late(late, commit=commit)

    def _end_late(self, late: bytes, *, commit: bool) -> None:
        number = self._begin()
        self._send(number, self._first)
        late_ns = time.monotonic_ns()
        try:
            self._request(self._end_api, late)
        except RequestFailed as rejection:
            if str(rejection) not in FENCED:
                raise
        if commit:
            self._abort(number, late_ns)
            return
        self._send(number, self._second)
        self._journal.write(TxnCommit(number, time.monotonic_ns()))
        self._end(end_txn_request(self._producer, commit=True, api=self._end_api))
        self._note_end(number, "committed", late_ns)

    def _choose_end_api(self) -> tuple[int, int]:
        served = highest_version(END_TXN_WITH_EPOCH, common_versions(self._spec.bootstrap))
        return served if served == END_TXN_WITH_EPOCH else END_TXN

    def _end(self, request: bytes) -> None:
        """End the transaction, and continue with the epoch that the response names."""
        answer = self._request(self._end_api, request)
        if self._end_api == END_TXN_WITH_EPOCH:
            self._producer.producer_id, self._producer.epoch = read_next_epoch(answer)
            self._producer.sequences.clear()

    def _abort(self, number: int, late_ns: int) -> None:
        """The transaction was committed meanwhile: its abort fails, and the producer cannot
        continue."""
        try:
            self._end(end_txn_request(self._producer, commit=False, api=self._end_api))
        except RequestFailed as failure_reason:
            self._producer = Producer(self._producer.transactional_id)
            ended = TxnEnd(number, time.monotonic_ns(), "unknown", str(failure_reason), late_ns)
            self._journal.write(ended)
            return
        self._note_end(number, "aborted", late_ns)

    def produce_late(self) -> None:
        """A record of an aborted transaction arrives during the next one, which has other
        partitions."""
        if self._producer.epoch < 0:
            self._initialise()
        number = self._begin()
        self._send(number, self._first)
        self._request(ADD_PARTITIONS, add_partitions_request(self._producer, *self._second))
        op, _, late = self._record(number, self._second)
        self._request(END_TXN, end_txn_request(self._producer, commit=False))
        self._note_end(number, "aborted", None)
        number = self._begin()
        self._send(number, self._first)
        was_appended = self._deliver(op, late)
        self._journal.write(TxnCommit(number, time.monotonic_ns()))
        self._request(END_TXN, end_txn_request(self._producer, commit=True))
        self._note_end(number, "committed", None)
        if was_appended:
            self._producer = Producer(self._producer.transactional_id)

    def exceed_timeout(self) -> None:
        """A transaction that lasts longer than its timeout. The coordinator must fence the producer
        when it aborts the transaction; otherwise later records would begin another one."""
        self._new_producer(OVERDUE_MS)
        number = self._begin()
        self._send(number, self._first)
        outcome, error_text, commit_sent = "unknown", None, False
        addition = add_partitions_request(self._producer, *self._first)
        try:
            until(  # the request changes nothing in an open transaction
                lambda: self._request(ADD_PARTITIONS, addition),
                lambda _answer: False,
                deadline_s=OVERDUE_S,
                poll_s=RETRY_S,
            )
            self._send(number, self._second)
            commit_sent = True
            self._journal.write(TxnCommit(number, time.monotonic_ns()))
            self._request(END_TXN, end_txn_request(self._producer, commit=True))
            outcome = "committed"
        except RequestFailed as failure_reason:
            error_text = str(failure_reason)
            if error_text in FENCED and not commit_sent:
                outcome = "fenced"
        self._journal.write(TxnEnd(number, time.monotonic_ns(), outcome, error_text, None))
        self._producer = Producer(self._producer.transactional_id)

    def send_from_fenced_producer(self) -> None:
        """Late requests of a fenced producer in its successor's transaction: a commit, a record, a
        marker of the old epoch, and a marker of a former coordinator."""
        self._new_producer()
        number, old = self._begin(), self._producer
        self._send(number, self._first)
        late = end_txn_request(old, commit=True)
        op, _, record = self._record(number, self._second)
        self._new_producer()
        self._note_end(number, "aborted", None)
        number = self._begin()
        self._send(number, self._first)
        with contextlib.suppress(RequestFailed):
            self._request(END_TXN, late)
        self._send_marker(old, FIRST_EPOCH)
        self._send_marker(self._producer, OLDER_EPOCH)
        self._send(number, self._second)
        self._deliver(op, record)
        self._request(END_TXN, end_txn_request(self._producer, commit=False))
        self._note_end(number, "aborted", None)

    def stay_idle(self, stop: Stop) -> None:
        """An idle producer: its id must not be forgotten in that time."""
        self._new_producer()
        stop.wait(REST_S)
        number, outcome, error_text = self._begin(), "aborted", None
        try:
            self._request(ADD_PARTITIONS, add_partitions_request(self._producer, *self._first))
            self._request(END_TXN, end_txn_request(self._producer, commit=False))
        except RequestFailed as failure_reason:
            outcome, error_text = "unknown", str(failure_reason)
        self._journal.write(TxnEnd(number, time.monotonic_ns(), outcome, error_text, None))

    def _send_marker(self, producer: Producer, coordinator_epoch: int) -> None:
        """Send a commit marker for the first partition to all brokers, of which the leader handles
        it."""
        for address in self._spec.bootstrap:
            with contextlib.suppress(OSError, LabFailure):
                request = write_markers_request(
                    producer,
                    *self._first,
                    commit=True,
                    coordinator_epoch=coordinator_epoch,
                    api=highest_version(WRITE_MARKERS, common_versions([address])),
                )
                self._send_to(address, request)

    def replace_producer(self) -> None:
        """Another producer with the same id, without a transaction: no later producer may get its
        epoch."""
        self._new_producer()
        self._note_end(self._begin(), "aborted", None)

    def _new_producer(self, timeout_ms: int | None = None) -> None:
        """Let another producer take the transactional id, which ends an open transaction."""
        self._producer = Producer(self._producer.transactional_id)
        self._initialise(timeout_ms)

    def _deliver(self, op: int, late: bytes) -> bool:
        """Send the late record to all brokers until one handles it. Returns whether it was
        appended."""
        topic, partition = self._second
        result, offset = "no answer", None
        for address in self._spec.bootstrap:
            try:
                answer = self._send_to(address, late)
            except OSError as failure:
                result = type(failure).__name__
                break
            result = f"error {read_error(PRODUCE, answer, topic)}"
            if result == APPENDED:
                offset = read_base_offset(answer, topic)
            if result not in NOT_HERE:
                break
        outcome = Ok if result == APPENDED else Fail if result == REFUSED else Info
        error = None if result == APPENDED else result
        self._journal.write(
            outcome(op, time.monotonic_ns(), error, -1, outcome is Info, partition, offset, None,
                    None, None, None, None)
        )  # fmt: skip
        return result == APPENDED

    def _initialise(self, timeout_ms: int | None = None) -> None:
        began_ns = time.monotonic_ns()
        timeout_ms = timeout_ms or transaction_timeout_ms(self._spec.workload)
        request = init_producer_id_request(self._producer.transactional_id, timeout_ms)
        answer = self._request(INIT_PRODUCER_ID, request)
        self._producer.producer_id, self._producer.epoch = read_init_producer_id(answer)
        self._init_ns = (began_ns, time.monotonic_ns())

    def _begin(self) -> int:
        self._txns += 1
        producer = self._producer
        self._journal.write(
            TxnBegin(
                self._txns,
                time.monotonic_ns(),
                *self._init_ns,
                producer.producer_id,
                producer.epoch,
            )
        )
        return self._txns

    def _note_end(self, number: int, outcome: str, late_ns: int | None) -> None:
        self._journal.write(TxnEnd(number, time.monotonic_ns(), outcome, None, late_ns))

    def _send(self, txn: int, slot: tuple[str, int]) -> None:
        """Send one record, after AddPartitionsToTxn for its partition."""
        producer = self._producer
        topic, partition = slot
        self._request(ADD_PARTITIONS, add_partitions_request(producer, topic, partition))
        op, now_ms, request = self._record(txn, slot)
        sequence = producer.sequences.get(slot, 0)
        fields = (None, producer.producer_id, producer.epoch, sequence, now_ms)
        try:
            answer = self._request(PRODUCE, request)
        except RequestFailed as failure_reason:
            now_ns = time.monotonic_ns()
            self._journal.write(
                Info(op, now_ns, str(failure_reason), -1, True, partition, None, *fields)
            )
            raise
        producer.sequences[slot] = sequence + 1
        offset = read_base_offset(answer, topic)
        self._journal.write(Ok(op, time.monotonic_ns(), None, -1, True, partition, offset, *fields))

    def _record(self, txn: int, slot: tuple[str, int]) -> tuple[int, int, bytes]:
        """Journal the next record as sent. Returns its number, its timestamp and the request."""
        producer, op, self._ops = self._producer, self._ops, self._ops + 1
        topic, partition = slot
        key, now_ms = f"late{partition}", time.time_ns() // 1_000_000
        value = self._encoder.encode(op, key.encode(), partition, now_ms)
        content = batch(producer, producer.sequences.get(slot, 0), key.encode(), value, now_ms)
        self._journal.write(
            Send(op, time.monotonic_ns(), topic, partition, key, now_ms, False, txn)
        )
        return op, now_ms, produce_request(producer, topic, partition, content)

    def _request(self, api: tuple[int, int], request: bytes) -> bytes:
        """Send a request to all brokers in turn until one succeeds. RequestFailed for a permanent
        error."""
        failure = "no answer"

        def send_to_all() -> bytes | None:
            nonlocal failure
            for address in self._spec.bootstrap:
                try:
                    answer = self._send_to(address, request)
                except OSError as error:
                    failure = type(error).__name__
                    continue
                code = read_error(api, answer, self._first[0])
                if not code:
                    return answer
                failure = f"error {code}"
                if code not in RETRIABLE:
                    raise RequestFailed(failure)
            return None

        answer = until(
            send_to_all,
            lambda answer: answer is not None,
            deadline_s=DEADLINE_S,
            poll_s=RETRY_S,
        )
        if answer is None:
            raise RequestFailed(failure)
        return answer

    def _send_to(self, address: str, request: bytes) -> bytes:
        connection = Connection(address, self._spec.workload.request_timeout_ms / 1000)
        try:
            return connection.call(request)
        finally:
            connection.close()


def send_late_requests(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Run `rests`, `takeovers`, `overdue_txns`, `late_produces`, and `delayed_ends` rounds, with an
    abort and a commit in turn; then wait for the stop."""
    client = DelayedRequests(spec, journal)
    options = DelayedRequestOptions.of(spec.workload)
    for _ in range(options.rests):
        if stop.is_set():
            return
        with contextlib.suppress(RequestFailed):
            client.stay_idle(stop)
    for _ in range(options.takeovers):
        if stop.is_set():
            return
        with contextlib.suppress(RequestFailed):
            client.replace_producer()
        stop.wait(TAKEOVER_S)
    for _ in range(options.overdue_txns):
        if stop.is_set():
            return
        client.exceed_timeout()
        client.send_from_fenced_producer()
    for _ in range(options.late_produces):
        if stop.is_set():
            return
        client.produce_late()
        stop.wait(EVERY_S)
    for number in range(options.delayed_ends):
        if stop.is_set():
            return
        client.run_round(commit=number % 2 == 1)
        stop.wait(EVERY_S)
    stop.wait_until_set()


def _count(scenario: Scenario) -> int:
    return int(any(msgspec.structs.astuple(DelayedRequestOptions.of(scenario.workload))))


KIND = ClientKind(
    name="late",
    about="Sends EndTxn and Produce requests that arrive in the next transaction.",
    needs=lambda _: (TRANSACTIONS,),
    stage=Stage.LOAD,
    judged_by=("zombie_write", "hanging_txn", "torn_txn"),
    prefix="late",
    count=lambda scenario: int(
        any(msgspec.structs.astuple(DelayedRequestOptions.of(scenario.workload)))
    ),
    work=send_late_requests,
    options=(DelayedRequestOptions, TransactionOptions),
    writes=Writes.IN_TRANSACTIONS,
)

if __name__ == "__main__":
    run_client(KIND)
