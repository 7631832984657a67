"""A producer process: it sends at its rate whatever the cluster does, and journals each outcome.

    python -m urteil.harness.clients.producers.producer SPEC.json

Its outcomes say which records must be in the log: acknowledged ones, once and in order, and none
that certainly failed. SIGTERM ends the load. Open records are flushed within the deadline; records
that remain open have no completion and count as unknown.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from functools import partial
from typing import Any, Protocol

from kafka import KafkaProducer
from kafka.errors import KafkaConfigurationError, KafkaError

from urteil.chaos.capabilities import RECORD_BATCHES
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.kafka_python_fixes import (
    fix_connections,
    refresh_unknown_leader,
    renew_producer_ids,
)
from urteil.harness.clients.kind import Belongs, ClientKind, Stage, Writes
from urteil.harness.clients.libraries import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, VERIFIABLE
from urteil.harness.clients.options import LibraryOptions, LoadOptions, SendOptions
from urteil.harness.clients.producers.delivery_attempts import AttemptRecorder
from urteil.harness.clients.producers.produced_records import Records
from urteil.harness.clients.spec import ClientSpec, producer_config
from urteil.harness.clients.stop import Stop
from urteil.harness.clients.workload_kinds import has_tombstones, is_transactional
from urteil.harness.evidence.journal import Fail, Info, JournalWriter, Ok, Send
from urteil.harness.scenario import Scenario

OUTSTANDING_MAX = 50_000
ROOM_WAIT_S = 0.2
RETRY_S = 0.2
CLOSE_TIMEOUT_S = 2.0


class Producer:
    """Sends and journals. Completions arrive in kafka-python's thread."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._acks = spec.workload.acks
        self._journal = journal
        self._records = Records(spec)
        self._room = threading.BoundedSemaphore(OUTSTANDING_MAX)
        self._config = producer_config(spec)
        self._kafka: KafkaProducer | None = None
        self._watch: AttemptRecorder | None = None

    def ensure_ready(self) -> bool:
        """Create a producer if there is none, or if the last one had a fatal error, as an
        application would. False if that failed."""
        if self._kafka is not None and not _is_dead(self._kafka):
            return True
        if self._kafka is not None:
            self._kafka.close(timeout=CLOSE_TIMEOUT_S)
            self._kafka = None
        try:
            self._kafka = KafkaProducer(**self._config)
        except KafkaConfigurationError:
            raise
        except KafkaError:
            return False
        fix_connections(self._kafka._sender._client._manager)
        refresh_unknown_leader(self._kafka._sender._client._manager)
        renew_producer_ids(self._kafka)
        self._watch = AttemptRecorder(self._kafka, self._journal)
        return True

    def reserve_slot(self) -> bool:
        """Reserve a place for another open record. False if there is none after a short wait."""
        return self._room.acquire(timeout=ROOM_WAIT_S)

    def send(self, op: int) -> None:
        """Send record `op`. Needs a reserved place and a producer; blocks while metadata is
        missing."""
        assert self._kafka is not None
        assert self._watch is not None
        record = self._records.record(op)
        self._journal.write(
            Send(op, time.monotonic_ns(), record.topic, record.partition, record.key,
                 record.timestamp_ms, record.value is None)
        )  # fmt: skip
        try:
            future = self._kafka.send(
                record.topic, record.value, key=record.key.encode(), headers=record.headers,
                partition=record.partition, timestamp_ms=record.timestamp_ms,
            )  # fmt: skip
        except (KafkaError, AssertionError, ValueError) as error:
            self._record_rejected(op, record.partition, error)
            return
        future.add_callback(partial(self._on_ok, op, self._watch, future))
        future.add_errback(partial(self._on_error, op, record.partition, self._watch, future))

    def process_completions(self) -> None:
        """Completions arrive in the sender's thread."""

    def close(self, flush_deadline_s: float) -> None:
        """Flush within the deadline, then give up the rest."""
        if self._kafka is None:
            return
        with contextlib.suppress(KafkaError):
            self._kafka.flush(timeout=flush_deadline_s)
        with contextlib.suppress(
            KafkaError
        ):  # close flushes too, and a partition may have no leader
            self._kafka.close(timeout=CLOSE_TIMEOUT_S)

    def _record_rejected(self, op: int, partition: int, error: BaseException) -> None:
        """Journal a record that was rejected before it entered a batch."""
        self._room.release()
        self._journal.write(
            Fail(op, time.monotonic_ns(), type(error).__name__, 0, False, partition,
                 None, None, None, None, None, None)
        )  # fmt: skip

    def _on_ok(self, op: int, watch: AttemptRecorder, future: Any, done: Any) -> None:
        now_ns = time.monotonic_ns()
        attempts, index = watch.pop_attempts(future)
        sequence = None if attempts.base_sequence is None else attempts.base_sequence + index
        known = self._acks != 0 and done.offset is not None and done.offset >= 0
        watch.note(
            Ok(op, now_ns, None, attempts.sent, attempts.sent - 1 > attempts.refused,
               done.partition, done.offset if known else None, attempts.node,
               attempts.producer_id, attempts.producer_epoch, sequence, done.timestamp)
        )  # fmt: skip
        self._room.release()

    def _on_error(
        self, op: int, partition: int, watch: AttemptRecorder, future: Any, error: BaseException
    ) -> None:
        now_ns = time.monotonic_ns()
        attempts, index = watch.pop_attempts(future)
        sequence = None if attempts.base_sequence is None else attempts.base_sequence + index
        certain = attempts.has_certainly_failed()
        outcome = Fail if certain else Info
        self._journal.write(
            outcome(op, now_ns, type(error).__name__, attempts.sent, not certain, partition,
                    None, attempts.node, attempts.producer_id, attempts.producer_epoch,
                    sequence, None)
        )  # fmt: skip
        self._room.release()


def _is_dead(kafka: KafkaProducer) -> bool:
    manager = kafka._transaction_manager
    return manager is not None and bool(manager.has_fatal_error())


class Sender(Protocol):
    """A producer of any library."""

    def ensure_ready(self) -> bool: ...
    def reserve_slot(self) -> bool: ...
    def process_completions(self) -> None:
        """Process arrived completions; called while there is nothing to send."""

    def send(self, op: int) -> None: ...
    def close(self, flush_deadline_s: float) -> None: ...


def make_producer(spec: ClientSpec, journal: JournalWriter) -> Sender:
    """A producer of the library that the workload names."""
    if spec.workload.client == CONFLUENT:
        from urteil.harness.clients.libraries.confluent_producer import ConfluentProducer

        return ConfluentProducer(spec, journal)
    if spec.workload.client == AIOKAFKA:
        from urteil.harness.clients.libraries.aiokafka_producer import AiokafkaProducer

        return AiokafkaProducer(spec, journal)
    return Producer(spec, journal)


def produce(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """The open loop: record n is due n / rate seconds after the start. Where the number of records
    is given, they are all due at once."""
    if spec.workload.client == VERIFIABLE:
        from urteil.harness.clients.libraries import verifiable_producer

        verifiable_producer.produce(spec, journal, stop)
        return
    producer = make_producer(spec, journal)
    rate = math.inf if spec.records else spec.rate_records_per_s
    begin = time.monotonic()
    op = 0
    while not stop.is_set():
        if op == spec.records:
            rate = 0.0
            producer.process_completions()
        wait_s = begin + op / rate - time.monotonic() if rate > 0 else 1.0
        if wait_s > 0:
            stop.wait(wait_s)
        elif not producer.ensure_ready():
            stop.wait(RETRY_S)
        elif producer.reserve_slot():
            producer.send(op)
            op += 1
    producer.close(spec.flush_deadline_s)


def _count(scenario: Scenario) -> int:
    load = scenario.workload
    return 0 if is_transactional(load.kind) else load.producers


KIND = ClientKind(
    name="producer",
    about="Sends records at its rate, whatever the cluster does, and journals each outcome.",
    belongs=Belongs.IN_TURN,
    needs=lambda load: (RECORD_BATCHES,) if has_tombstones(load.kind) else (),
    stage=Stage.LOAD,
    judged_by=("lost_write", "duplicate", "sequence_gap"),
    prefix="p",
    count=_count,
    work=produce,
    options=(LoadOptions, SendOptions, LibraryOptions),
    libraries=(KAFKA_PYTHON, CONFLUENT, AIOKAFKA, VERIFIABLE),
    writes=Writes.BY_WORKLOAD,
    has_rate=True,
    may_be_old=True,
    only_written_topics=True,
)

if __name__ == "__main__":
    run_client(KIND)
