"""A live reader and a group member with confluent-kafka (librdkafka).

librdkafka reports neither the generation of a group nor the attempts of a commit. So checks
that need a generation do not judge these members, and every commit counts as possibly repeated.
Members of a group of the protocol `consumer` journal their epochs (`member_epochs`).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from urteil.harness.clients.libraries.confluent_producer import connection_config, name_of
from urteil.harness.clients.libraries.member_epochs import (
    EndedEpoch,
    commit_in_ended_epoch,
    member_epoch,
)
from urteil.harness.clients.libraries.unreported_attempts import POSSIBLY_REPEATED
from urteil.harness.clients.options import (
    CONSUMER,
    FETCH_MAX_WAIT_MS,
    FetchOptions,
    GroupOptions,
    GroupProtocol,
    MembershipOptions,
    member_protocol,
)
from urteil.harness.clients.payload import decode, decode_copy, key_text
from urteil.harness.clients.spec import ClientSpec
from urteil.harness.clients.stop import Stop
from urteil.harness.evidence.journal import (
    IDLE_NS,
    Assigned,
    Commit,
    CommitEntry,
    CommitRead,
    Committed,
    Got,
    JournalWriter,
    PassBegin,
    PassEnd,
    Poll,
    Slice,
)

RECORDS = 500
POLL_S = 0.2
REQUEST_S = 5.0
RETRY_S = 0.1
UNRELEASED = "The instance ID is still used"
BEGIN_AGAIN_S = 1.0
"""As long as a supervisor waits before it starts a client again."""
ASSIGNORS = {"range": "range", "cooperative": "cooperative-sticky"}
Slot = tuple[str, int]


def consumer_config(spec: ClientSpec) -> dict[str, Any]:
    """The settings of `spec.consumer_config` by librdkafka's names."""
    return connection_config(spec) | {
        "group.id": f"{spec.run}-{spec.client}",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "isolation.level": spec.isolation,
        "fetch.wait.max.ms": FETCH_MAX_WAIT_MS,
        "check.crcs": False,
    }


def fetch_limits(spec: ClientSpec) -> dict[str, Any]:
    """The size of fetches, if the workload sets it."""
    limit = FetchOptions.of(spec.workload).fetch_bytes
    return {} if limit is None else {"max.partition.fetch.bytes": limit}


def member_config(spec: ClientSpec) -> dict[str, Any]:
    """The settings of a group member."""
    options = MembershipOptions.of(spec.workload)
    config = consumer_config(spec) | {
        "group.id": spec.workload.group,
        "auto.offset.reset": "earliest",
        "max.poll.interval.ms": options.max_poll_interval_ms,
    }
    if spec.instance is not None:
        config["group.instance.id"] = spec.instance
    return config | _protocol_config(options, member_protocol(spec.workload, spec.session))


def _protocol_config(options: MembershipOptions, protocol: GroupProtocol) -> dict[str, Any]:
    """The settings of a member's protocol. The brokers have those of sessions in a `consumer`
    group. In a classic one librdkafka rejects a session timeout above the poll interval."""
    if protocol == CONSUMER:
        config: dict[str, Any] = {"group.protocol": CONSUMER}
        assignor = options.remote_assignor
        return config if assignor is None else config | {"group.remote.assignor": assignor}
    return {
        "session.timeout.ms": min(options.session_timeout_ms, options.max_poll_interval_ms),
        "heartbeat.interval.ms": options.heartbeat_interval_ms,
        "partition.assignment.strategy": ASSIGNORS[options.assignor],
    }


class Journal:
    """Journals polls, for readers and members alike."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._run = spec.run
        self._copies = spec.copies()
        self.write = journal.write
        self.position: dict[Slot, int] = {}
        self.event: dict[Slot, str] = {}
        self.passes: dict[Slot, int] = {}
        self._polls = 0
        self._noted_ns = 0

    def poll(self, invoke_ns: int, messages: list[Message], txn: int | None = None) -> list[Slot]:
        """Journal a poll, within a transaction or outside. Returns the partitions of its
        records."""
        records: dict[Slot, list[Message]] = defaultdict(list)
        for message in messages:
            error = message.error()
            if error is None:
                records[_slot(message)].append(message)
            else:
                self._note(invoke_ns, "info", error.name(), [])
        if records:
            slices = [self._slice(slot, messages) for slot, messages in records.items()]
            self._note(invoke_ns, "ok", None, slices, txn)
        elif invoke_ns - self._noted_ns > IDLE_NS:
            self._note(invoke_ns, "ok", None, [])
        return list(records)

    def _note(
        self,
        invoke_ns: int,
        outcome: str,
        error: str | None,
        slices: list[Slice],
        txn: int | None = None,
    ) -> None:
        self._polls += 1
        now_ns = self._noted_ns = time.monotonic_ns()
        self.write(Poll(self._polls, invoke_ns, now_ns, outcome, error, None, slices, txn))

    def _slice(self, slot: Slot, records: list[Message]) -> Slice:
        before = self.position.get(slot)
        self.position[slot] = (records[-1].offset() or 0) + 1
        entries = [
            journal_entry(self._run, record, copied=slot[0] in self._copies) for record in records
        ]
        return Slice(*slot, self.passes[slot], before, self.position[slot],
                     self.event.pop(slot, None), entries)  # fmt: skip


class Reader:
    """Follows every partition from its start, pass by pass, as `consumer` does."""

    def __init__(
        self, spec: ClientSpec, journal: JournalWriter, settings: Mapping[str, Any] = {}
    ) -> None:
        self._isolation = spec.isolation
        self._partitions = spec.partitions()
        self._journal = Journal(spec, journal)
        self._kafka = Consumer({**consumer_config(spec), **fetch_limits(spec), **settings})
        self._next_pass = 0

    def start(self, stop: Stop) -> None:
        """Begin at the log start offsets."""
        starts = [
            TopicPartition(*slot, self._watermarks(slot, stop)[0]) for slot in self._partitions
        ]
        self._kafka.assign(starts)
        for start in starts:
            self._begin((start.topic, start.partition), start.offset)

    def step(self, stop: Stop, txn: int | None = None, *, wait_s: float = POLL_S) -> None:
        """Poll once: wait for a record, and take with it what is there. After a lost position,
        continue in a new pass."""
        invoke_ns = time.monotonic_ns()
        messages = self._kafka.consume(1, wait_s)
        if messages:  # `consume` waits for as many records as it may return
            messages += self._kafka.consume(RECORDS - 1, 0)
        messages = self._without_ends(messages)
        self._journal.poll(invoke_ns, messages, txn)
        for message in messages:
            error = message.error()
            if error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._reset(_slot(message), stop)

    def _without_ends(self, messages: list[Message]) -> list[Message]:
        """The messages that are records or errors, where ends of partitions are messages, too."""
        return messages

    def close(self) -> None:
        """End every pass at its position."""
        for slot in list(self._journal.passes):
            self._end(slot)
        self._kafka.close()

    def _watermarks(self, slot: Slot, stop: Stop) -> tuple[int, int]:
        while not stop.is_set():
            try:
                low, high = self._kafka.get_watermark_offsets(TopicPartition(*slot), REQUEST_S)
                return low, high
            except KafkaException:
                stop.wait(RETRY_S)
        return 0, 0

    def _begin(self, slot: Slot, offset: int) -> None:
        self._journal.passes[slot], self._journal.position[slot] = self._next_pass, offset
        self._journal.write(
            PassBegin(self._next_pass, *slot, time.monotonic_ns(), offset, None, self._isolation,
                      False)
        )  # fmt: skip
        self._next_pass += 1

    def _end(self, slot: Slot) -> None:
        number = self._journal.passes.pop(slot)
        self._journal.write(
            PassEnd(number, *slot, time.monotonic_ns(), self._journal.position[slot], True, None)
        )

    def _reset(self, slot: Slot, stop: Stop) -> None:
        low, high = self._watermarks(slot, stop)
        offset = max(low, min(self._journal.position[slot], high))
        self._end(slot)
        self._kafka.seek(TopicPartition(*slot, offset))
        self._begin(slot, offset)
        self._journal.event[slot] = "reset"


class Member:
    """A group member that commits what it processed, as `group_consumer` does."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        options = GroupOptions.of(spec.workload)
        self._spec = spec
        self._journal = Journal(spec, journal)
        self._commits_first = options.commit == "before"
        self._has_epochs = member_protocol(spec.workload, spec.session) == CONSUMER
        self._is_zombie = self._has_epochs and options.zombie_commits
        self._last_epoch = self._journaled_epoch = 0
        self._ended_epochs: list[EndedEpoch] = []
        self._new_partitions: list[TopicPartition] = []
        self._pass = 0
        self._commits = 0
        self._kafka = self._open_consumer()

    def _open_consumer(self) -> Consumer:
        kafka = Consumer(member_config(self._spec) | fetch_limits(self._spec))
        kafka.subscribe(
            [topic.name for topic in self._spec.topics],
            on_assign=lambda _, assigned: self._note("assigned", assigned),
            on_revoke=lambda _, revoked: self._note("revoked", revoked),
            on_lost=lambda _, revoked: self._note("lost", revoked),
        )
        return kafka

    def step(self) -> None:
        """Poll, process, commit."""
        invoke_ns = time.monotonic_ns()
        messages = self._kafka.consume(RECORDS, POLL_S)
        if self._commits_first:
            records = [message for message in messages if not message.error()]
            self._commit({_slot(record): (record.offset() or 0) + 1 for record in records})
        slots = self._journal.poll(invoke_ns, messages)
        if not self._commits_first:
            self._commit({slot: self._journal.position[slot] for slot in slots})
        new_partitions, self._new_partitions = self._new_partitions, []
        if new_partitions:
            self._read_committed(new_partitions)
        self._commit_as_zombie()
        if any(_lacks_instance(message.error()) for message in messages):
            self._begin_again()

    def _begin_again(self) -> None:
        """Continue with another consumer after the error that ended this one."""
        self._kafka.close()
        time.sleep(BEGIN_AGAIN_S)
        self._kafka = self._open_consumer()

    def close(self) -> None:
        """Leave the group."""
        self._kafka.close()

    def _member_id(self) -> str | None:
        return self._kafka.memberid() or None

    def _epoch(self) -> int | None:
        return member_epoch(self._kafka) if self._has_epochs else None

    def _journal_epoch(self) -> int | None:
        """The epoch for an entry that shows that the member had received it."""
        epoch = self._epoch()
        self._last_epoch = epoch or self._last_epoch
        self._journaled_epoch = max(self._journaled_epoch, epoch or 0)
        return epoch

    def _note(self, event: str, partitions: list[TopicPartition]) -> None:
        slots = sorted((partition.topic, partition.partition) for partition in partitions)
        member_id = self._member_id()
        if event != "assigned":
            self._keep_positions(slots, member_id)
        epoch = self._journal_epoch() if event == "assigned" and slots else self._epoch()
        self._journal.write(Assigned(time.monotonic_ns(), event, None, member_id, slots, epoch))
        self._pass += event == "assigned"
        for slot in slots:
            self._journal.position.pop(slot, None)
            if event == "assigned":
                self._journal.passes[slot] = self._pass
                self._journal.event[slot] = "rebalance"
        self._new_partitions = [
            partition
            for partition in self._new_partitions
            if (partition.topic, partition.partition) not in slots
        ]
        if event == "assigned":
            self._new_partitions += [TopicPartition(*slot) for slot in slots]

    def _keep_positions(self, slots: list[Slot], member_id: str | None) -> None:
        """Keep the positions in partitions that the member gives back, for a commit as a zombie."""
        positions = {slot: p for slot in slots if (p := self._journal.position.get(slot))}
        if self._is_zombie and positions and member_id and self._last_epoch:
            self._ended_epochs.append(
                EndedEpoch(epoch=self._last_epoch, member_id=member_id, positions=positions)
            )

    def _commit_as_zombie(self) -> None:
        """Commit in each epoch that has ended; the coordinator must reject it."""
        for ended in [each for each in self._ended_epochs if each.epoch < self._journaled_epoch]:
            self._ended_epochs.remove(ended)
            entries = [CommitEntry(*slot, p, p) for slot, p in ended.positions.items()]
            self._commits += 1
            self._journal.write(
                Commit(self._commits, time.monotonic_ns(), None, ended.member_id, entries,
                       member_epoch=ended.epoch)
            )  # fmt: skip
            outcome, error = commit_in_ended_epoch(
                self._spec.bootstrap, self._spec.workload.group, ended
            )
            self._journal.write(Committed(self._commits, time.monotonic_ns(), outcome, error))

    def _commit(self, positions: dict[Slot, int]) -> None:
        if not positions:
            return
        self._commits += 1
        entries = [
            CommitEntry(*slot, offset, self._journal.position.get(slot, -1))
            for slot, offset in positions.items()
        ]
        member_id, epoch = self._member_id(), self._journal_epoch()
        self._journal.write(
            Commit(self._commits, time.monotonic_ns(), None, member_id, entries, member_epoch=epoch)
        )
        outcome, error = "ok", POSSIBLY_REPEATED
        try:
            offsets = [TopicPartition(*slot, offset) for slot, offset in positions.items()]
            answers = self._kafka.commit(offsets=offsets, asynchronous=False) or []
            errors = [answer.error for answer in answers if answer.error is not None]
            if errors:
                outcome, error = "info", errors[0].name()
        except KafkaException as failure:
            outcome, error = "info", name_of(failure)
        self._journal.write(Committed(self._commits, time.monotonic_ns(), outcome, error))

    def _read_committed(self, partitions: list[TopicPartition]) -> None:
        invoke_ns = time.monotonic_ns()
        outcome, error, answers = "ok", None, partitions
        try:
            answers = self._kafka.committed(partitions, REQUEST_S)
        except KafkaException as failure:
            outcome, error = "info", name_of(failure)
        complete_ns = time.monotonic_ns()
        for answer in answers:
            error_name = error if answer.error is None else answer.error.name()
            offset = answer.offset if answer.offset >= 0 else None
            self._journal.write(
                CommitRead(invoke_ns, complete_ns, outcome if error_name is None else "info",
                           error_name, None, self._member_id(), answer.topic, answer.partition,
                           offset)
            )  # fmt: skip


def _lacks_instance(error: KafkaError | None) -> bool:
    """Whether the coordinator rejected a static member because another session has its instance
    (UNRELEASED_INSTANCE_ID in a `consumer` group). librdkafka then ends the consumer with an error
    that has the cause in its text alone."""
    return error is not None and error.code() == KafkaError._FATAL and UNRELEASED in error.str()


def _slot(message: Message) -> Slot:
    return str(message.topic()), int(message.partition() or 0)


def journal_entry(run: str, record: Message, *, copied: bool = False) -> Got:
    """A record of librdkafka as a journal entry."""
    key, value = record.key(), record.value()
    headers: Any = record.headers() or []
    kind, timestamp_ms = record.timestamp()
    if copied:
        payload = decode_copy(run, value, key)
    else:
        sent_ms = timestamp_ms if kind == TIMESTAMP_CREATE_TIME else None
        payload = decode(run, value, key, headers, sent_ms)
    return Got(record.offset() or 0, key_text(key), payload.value_id, payload.intact,
               record.leader_epoch(), timestamp_ms)  # fmt: skip
