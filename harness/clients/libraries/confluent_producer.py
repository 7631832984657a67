"""A producer with confluent-kafka (librdkafka).

librdkafka retries internally and reports neither attempts nor the responding broker, and Python
cannot read whether a failed message was possibly written. So a record certainly failed only if
`produce` itself rejected it. The outcome of any later error is unknown.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from urteil.harness.clients.libraries.unreported_attempts import completion_without_attempts
from urteil.harness.clients.producers.produced_records import Records
from urteil.harness.clients.spec import (
    METADATA_MAX_AGE_MS,
    RECONNECT_BACKOFF_MAX_MS,
    ClientSpec,
    library_settings,
)
from urteil.harness.evidence.journal import Fail, Info, JournalWriter, Ok, Send

MOST_OPEN = 50_000
"""The most sends without a completion."""
SLOT_WAIT_S = 0.2


def connection_config(spec: ClientSpec) -> dict[str, Any]:
    """The settings of `spec.connection_config` by librdkafka's names."""
    return {
        "bootstrap.servers": ",".join(spec.bootstrap),
        "client.id": spec.client,
        "socket.timeout.ms": max(1_000, spec.workload.request_timeout_ms),
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": RECONNECT_BACKOFF_MAX_MS,
        "retry.backoff.ms": 50,
        "metadata.max.age.ms": METADATA_MAX_AGE_MS,
        "topic.metadata.refresh.interval.ms": METADATA_MAX_AGE_MS,
        "allow.auto.create.topics": False,
        "log_level": 3,
    }


def producer_config(spec: ClientSpec) -> dict[str, Any]:
    """acks, idempotence, timeouts and `SendOptions` by librdkafka's names."""
    load = spec.workload
    config = connection_config(spec) | {
        "acks": load.acks,
        "enable.idempotence": spec.idempotent,
        "max.in.flight.requests.per.connection": load.in_flight,
        "request.timeout.ms": load.request_timeout_ms,
        "message.timeout.ms": load.delivery_timeout_ms,
        "queue.buffering.max.messages": 2 * MOST_OPEN,
    }
    settings = library_settings(load).items()
    return config | {name.replace("_", "."): value for name, value in settings}


class ConfluentProducer:
    """Sends and journals. Completions arrive during `poll`, in the sending thread."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._acks = spec.workload.acks
        self._journal = journal
        self._records = Records(spec)
        self._config = producer_config(spec)
        self._kafka: Producer | None = None
        self._fatal = False
        self._open_sends = 0

    def ensure_ready(self) -> bool:
        """Create a producer if there is none, or if the last one had a fatal error."""
        if self._kafka is not None and self._fatal:
            self._kafka.flush(0)
            self._kafka, self._fatal = None, False
        if self._kafka is None:
            self._kafka = Producer(self._config | {"error_cb": self._on_fatal})
        self._kafka.poll(0)
        return True

    def process_completions(self) -> None:
        """Process the completions that have arrived."""
        if self._kafka is not None:
            self._kafka.poll(0)

    def reserve_slot(self) -> bool:
        """Whether another record may be open, after a short wait for completions."""
        if self._open_sends >= MOST_OPEN and self._kafka is not None:
            self._kafka.poll(SLOT_WAIT_S)
        return self._open_sends < MOST_OPEN

    def send(self, op: int) -> None:
        """Send record `op`."""
        assert self._kafka is not None
        record = self._records.record(op)
        self._journal.write(
            Send(op, time.monotonic_ns(), record.topic, record.partition, record.key,
                 record.timestamp_ms, record.value is None)
        )  # fmt: skip
        self._open_sends += 1
        headers: list[tuple[str, str | bytes | None]] = [*record.headers]
        try:
            self._kafka.produce(
                record.topic, record.value, record.key.encode(), record.partition,
                on_delivery=partial(self._on_delivery, op, record.partition),
                timestamp=record.timestamp_ms, headers=headers,
            )  # fmt: skip
        except (KafkaException, BufferError, ValueError) as error:
            self._open_sends -= 1
            self._journal.write(
                completion_without_attempts(Fail, op, name_of(error), record.partition, attempts=0)
            )

    def close(self, flush_deadline_s: float) -> None:
        """Flush within the deadline, then give up the rest."""
        if self._kafka is not None:
            self._kafka.flush(flush_deadline_s)

    def _on_fatal(self, error: KafkaError) -> None:
        self._fatal = self._fatal or error.fatal()

    def _on_delivery(
        self, op: int, partition: int, error: KafkaError | None, delivered: Any
    ) -> None:
        self._open_sends -= 1
        if error is not None:
            self._fatal = self._fatal or error.fatal()
            self._journal.write(completion_without_attempts(Info, op, error.name(), partition))
            return
        offset = None if self._acks == 0 else offset_of(delivered)
        self._journal.write(
            completion_without_attempts(Ok, op, None, delivered.partition(), offset)
        )


def offset_of(delivered: Message) -> int | None:
    """The offset of a delivered message. Unknown if its request timed out and librdkafka concluded
    from a later success that it was written."""
    offset = delivered.offset()
    return offset if offset is not None and offset >= 0 else None


def name_of(error: BaseException) -> str:
    """The name of an error in the evidence."""
    if isinstance(error, KafkaException) and isinstance(error.args[0], KafkaError):
        return str(error.args[0].name())
    return type(error).__name__
