"""A member of a share group: polls, journals and acknowledges, with any library's share consumer.

A poll returns what a library has fetched, and a library may keep answers of several brokers for
later polls. So a record was acquired after the begin of the last poll but `kept_answers` that
returned any.

Brokers apply the acknowledgements of one partition in a request together or not at all, and reject
them with INVALID_RECORD_STATE where a lock is no longer the member's. That is certain only with a
library that sends each acknowledgement once; of every other error the effect is unknown.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from confluent_kafka import (
    AcknowledgeType,
    IllegalStateException,
    KafkaException,
    ShareConsumer,
    TopicPartition,
)

from urteil.harness.clients.libraries import JAVA
from urteil.harness.clients.libraries.confluent_consumer import journal_entry
from urteil.harness.clients.libraries.confluent_producer import connection_config, name_of
from urteil.harness.clients.libraries.java_share_consumer import JavaShareConsumer
from urteil.harness.clients.options import GroupOptions, ShareOptions
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import (
    IDLE_NS,
    Acknowledge,
    Acknowledged,
    Acknowledgement,
    AcknowledgeResult,
    Delivered,
    DeliveredRecord,
    DeliveredSlice,
    JournalWriter,
    Poll,
)

POLL_S = 0.2
COMMIT_S = 3.0
RETRY_S = 0.1
BEYOND_LOCK = 1.5
"""A late acknowledgement comes after so many durations of the lock."""
REJECTIONS = frozenset({"INVALID_RECORD_STATE"})
"""Errors with which a broker applies nothing."""
ACCEPT, RELEASE, REJECT = "accept", "release", "reject"
TYPES = {
    ACCEPT: AcknowledgeType.ACCEPT,
    RELEASE: AcknowledgeType.RELEASE,
    REJECT: AcknowledgeType.REJECT,
}
UNSUPPORTED = ("allow.auto.create.topics",)
"""Settings of other clients that a share consumer refuses."""


def share_config(spec: ClientSpec) -> dict[str, Any]:
    """The settings of a member by librdkafka's names."""
    config = {name: v for name, v in connection_config(spec).items() if name not in UNSUPPORTED}
    config |= {"group.id": spec.workload.group, "share.acknowledgement.mode": "explicit"}
    most = GroupOptions.of(spec.workload).max_poll_records
    return config if most is None else config | {"max.poll.records": most}


def confluent_consumer(spec: ClientSpec) -> ShareConsumer:
    """librdkafka's share consumer of the spec's topics."""
    consumer = ShareConsumer(share_config(spec))
    consumer.subscribe([topic.name for topic in spec.topics])
    return consumer


class Consumer(Protocol):
    """The methods of confluent-kafka's ShareConsumer that a member calls."""

    def poll(self, timeout: float, /) -> Iterable[Any]: ...
    def acknowledge(self, message: Any, ack_type: AcknowledgeType, /) -> None: ...
    def commit_sync(self, timeout: float, /) -> Mapping[TopicPartition, KafkaException | None]: ...
    def close(self) -> None: ...


class ShareMember:
    """Polls and acknowledges, record by record. The Java client may keep an answer of each broker,
    and repeats acknowledgements; librdkafka has one request for records at a time."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        is_java = spec.workload.client == JAVA
        kept_answers = len(spec.bootstrap) if is_java else 1
        self._run, self._group = spec.run, spec.workload.group
        self._copies = spec.copies()
        self._options = ShareOptions.of(spec.workload)
        self._random = Random(spec.seed)
        self._journal = journal
        self._polls = 0
        self._noted_ns = time.monotonic_ns()
        self._requests_ns = deque([self._noted_ns] * kept_answers, maxlen=kept_answers)
        self._rejections: frozenset[str] = frozenset() if is_java else REJECTIONS
        self._kafka: Consumer = JavaShareConsumer(spec) if is_java else confluent_consumer(spec)

    def step(self, stop: Stop) -> None:
        """Poll once, process what was delivered, and acknowledge it."""
        invoke_ns = time.monotonic_ns()
        self._polls += 1
        try:
            messages = list(self._kafka.poll(POLL_S))
        except KafkaException as failure:
            self._note(invoke_ns, "info", name_of(failure))
            stop.wait(RETRY_S)
            return
        for error in filter(None, (message.error() for message in messages)):
            self._note(invoke_ns, "info", error.name())
        records = [message for message in messages if message.error() is None]
        if records:
            self._deliver(records)
            self._requests_ns.append(invoke_ns)
            if self._random.random() < self._options.late_acknowledgements:
                stop.wait(BEYOND_LOCK * self._options.lock_ms / 1000)
            self._acknowledge(records)
        elif invoke_ns - self._noted_ns > IDLE_NS:
            self._note(invoke_ns, "ok", None)

    def close(self) -> None:
        """Leave the group."""
        self._kafka.close()

    def _note(self, invoke_ns: int, outcome: str, error: str | None) -> None:
        now_ns = self._noted_ns = time.monotonic_ns()
        self._journal.write(Poll(self._polls, invoke_ns, now_ns, outcome, error, None, []))

    def _deliver(self, records: Sequence[Any]) -> None:
        read_ns = self._noted_ns = time.monotonic_ns()
        slices: dict[tuple[str, int], list[DeliveredRecord]] = defaultdict(list)
        for record in records:
            topic, partition, _ = _place(record)
            got = journal_entry(self._run, record, copied=topic in self._copies)
            slices[topic, partition].append(
                DeliveredRecord(got.offset, got.key, got.value_id, got.intact, got.leader_epoch,
                                got.timestamp_ms, record.delivery_count())
            )  # fmt: skip
        parts = [DeliveredSlice(*place, entries) for place, entries in slices.items()]
        self._journal.write(
            Delivered(self._polls, self._requests_ns[0], read_ns, self._group, parts)
        )

    def _acknowledge(self, records: Sequence[Any]) -> None:
        """Acknowledge all records in one commit. A library rejects a record that it no longer
        has."""
        chosen = []
        for record in records:
            kind = self._draw()
            try:
                self._kafka.acknowledge(record, TYPES[kind])
            except (IllegalStateException, KafkaException):
                continue
            chosen.append(Acknowledgement(*_place(record), kind))
        self._journal.write(Acknowledge(time.monotonic_ns(), chosen))
        try:
            answers = self._kafka.commit_sync(COMMIT_S)
        except KafkaException as failure:
            slots = {(one.topic, one.partition) for one in chosen}
            results = [self._result(*slot, failure) for slot in sorted(slots)]
        else:
            results = [
                self._result(str(slot.topic), slot.partition, failure)
                for slot, failure in answers.items()
            ]
        self._noted_ns = time.monotonic_ns()
        self._journal.write(Acknowledged(self._noted_ns, results))

    def _result(
        self, topic: str, partition: int, failure: KafkaException | None
    ) -> AcknowledgeResult:
        if failure is None:
            return AcknowledgeResult(topic, partition, "ok", None)
        name = name_of(failure)
        outcome = "fail" if name in self._rejections else "info"
        return AcknowledgeResult(topic, partition, outcome, name)

    def _draw(self) -> str:
        drawn = self._random.random()
        if drawn < self._options.releases:
            return RELEASE
        return REJECT if drawn < self._options.releases + self._options.rejects else ACCEPT


def _place(record: Any) -> tuple[str, int, int]:
    return str(record.topic()), int(record.partition() or 0), int(record.offset() or 0)
