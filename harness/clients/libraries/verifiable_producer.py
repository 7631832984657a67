"""A producer that is Kafka's VerifiableProducer, with the Java client.

The tool reports when a record was acknowledged, not when it was sent. But since its start it never
sends more than its rate allows. So the client journals the records that the tool may send next
ahead of time, at a moment that no pause of this process can make too late. Invocations are
therefore lower bounds, a second or more early, and latencies are upper bounds.
"""

from __future__ import annotations

import time

from kafka.partitioner.default import murmur2

from urteil.harness.clients.libraries.unreported_attempts import completion_without_attempts
from urteil.harness.clients.libraries.verifiable_tool import (
    STEP_S,
    Tool,
    ToolMessage,
    connection_config,
    monotonic_ns,
    topic_of,
)
from urteil.harness.clients.libraries.verifiable_values import prefix_of
from urteil.harness.clients.spec import ClientSpec, library_settings
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import Fail, Info, JournalWriter, Ok, Send

S = 1_000_000_000
AHEAD_NS = S // 5
BEGAN_BEFORE_NS = S
"""The tool counts from a moment shortly before it reports its start, and not longer before."""


def producer_config(spec: ClientSpec) -> dict[str, object]:
    """acks, idempotence, timeouts and `SendOptions` by Apache Kafka's names."""
    load = spec.workload
    config = connection_config(spec) | {
        "acks": load.acks,
        "enable.idempotence": str(spec.idempotent).lower(),
        "max.in.flight.requests.per.connection": load.in_flight,
        "delivery.timeout.ms": load.delivery_timeout_ms,
        "max.block.ms": load.delivery_timeout_ms,
        "retries": 2**31 - 1,
    }
    settings = library_settings(load).items()
    return config | {name.replace("_", "."): value for name, value in settings}


class VerifiableProducer:
    """Journals what the tool may send, and its reports."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._spec = spec
        self._journal = journal
        self._topic, self._partitions = topic_of(spec)
        self._keys = max(1, spec.workload.keys)
        self._rate = max(1, round(spec.rate_records_per_s))
        self._next = 0
        self._last_ns = self._began_ns = time.monotonic_ns()
        self._note_sends()
        self._tool = Tool(spec, "VerifiableProducer", self._arguments(), producer_config(spec))

    def step(self, stop: Stop) -> None:
        """Journal the sends of the near future and process messages. ToolExited if the
        tool exited."""
        self._note_sends()
        for message in self._tool.messages():
            self._process(message)
        if self._spec.records is None:
            self._tool.check(stop)

    def close(self, flush_deadline_s: float) -> None:
        """Flush within the deadline, then give up the rest."""

        def process_messages() -> None:
            self._note_sends()
            for message in self._tool.messages():
                self._process(message)

        self._tool.end(process_messages, deadline_s=flush_deadline_s)

    def _arguments(self) -> list[str]:
        spec = self._spec
        if spec.records is None:
            load = ["--throughput", str(self._rate)]
        else:
            load = ["--throughput", "-1", "--max-messages", str(spec.records)]
        return [
            "--topic", self._topic, *load,
            "--acks", str(spec.workload.acks), "--repeating-keys", str(self._keys),
            "--value-prefix", str(prefix_of(spec.run, spec.client)),
        ]  # fmt: skip

    def _note_sends(self, least: int = 0) -> None:
        """Journal what the tool may send within AHEAD_NS, and at least `least` records. The tool
        could not yet send them at the last such call: that moment is their invocation, however late
        this process is now."""
        now_ns = time.monotonic_ns()
        due = self._spec.records
        if due is None:
            due = max(least, self._rate * (now_ns - self._began_ns + AHEAD_NS) // S + 2)
        for op in range(self._next, due):
            self._journal.write(
                Send(op, self._last_ns, self._topic, self._partition_of(op), str(op % self._keys),
                     time.time_ns() // 1_000_000)
            )  # fmt: skip
        self._next, self._last_ns = max(self._next, due), now_ns

    def _partition_of(self, op: int) -> int:
        """The partition that Java's partitioner chooses for the key of a record."""
        return int(murmur2(str(op % self._keys).encode()) & 0x7FFFFFFF) % self._partitions

    def _process(self, message: ToolMessage) -> None:
        name = message["name"]
        if name == "startup_complete":
            self._began_ns = max(self._began_ns, monotonic_ns(message) - BEGAN_BEFORE_NS)
        elif name == "producer_send_success":
            offset = message["offset"] if message["offset"] >= 0 else None
            self._write(
                completion_without_attempts(Ok, _op(message), None, message["partition"], offset)
            )
        elif name == "producer_send_error":
            error = message["exception"].rpartition(".")[2]
            self._write(
                completion_without_attempts(
                    Info, _op(message), error, self._partition_of(_op(message))
                )
            )
        elif name == "tool_data":
            self._note_unsent(message["sent"])

    def _write(self, done: Ok | Fail | Info) -> None:
        self._note_sends(done.op + 1)
        self._journal.write(done)

    def _note_unsent(self, sent: int) -> None:
        """The record that was being sent when the tool counted may be written; later ones
        are not."""
        for op in range(sent + 1, self._next):
            self._journal.write(
                completion_without_attempts(
                    Fail, op, "NeverSent", self._partition_of(op), attempts=0
                )
            )


def _op(message: ToolMessage) -> int:
    return int(message["value"].partition(".")[2])


def produce(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Let the tool send until the stop is requested."""
    if not spec.rate_records_per_s and not spec.records:
        while not stop.is_set():
            stop.wait(STEP_S)
        return
    producer = VerifiableProducer(spec, journal)
    while not stop.is_set():
        producer.step(stop)
    producer.close(spec.flush_deadline_s)
