"""A member of a consumer group that commits what it has processed.

    python -m urteil.harness.clients.consumers.group_consumer SPEC.json

Processing a record means journaling it. The offsets of a poll are committed after it was processed
(or before, by the option `commit`), one request at a time. After each rebalance the member fetches
the committed offsets and journals them.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.base import Generation
from kafka.errors import (
    CommitFailedError,
    CorruptRecordError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    KafkaError,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafka.structs import OffsetAndMetadata

from urteil.chaos.capabilities import STATIC_MEMBERS
from urteil.harness.clients.client_main import run_client
from urteil.harness.clients.consumers.journaling_consumer import (
    POLL_TIMEOUT_MS,
    damaged_slice,
    journal_entry,
    lost_positions,
)
from urteil.harness.clients.kafka_python_fixes import (
    drop_corrupt_response,
    finish_joining,
    fix_connections,
    forget_lost_positions,
    retry_missing_partitions,
)
from urteil.harness.clients.kind import ClientKind, Stage
from urteil.harness.clients.libraries import CONFLUENT, KAFKA_PYTHON, VERIFIABLE
from urteil.harness.clients.offsets.committed_offset_reader import CommittedOffsetReader
from urteil.harness.clients.options import FetchOptions, GroupOptions, MembershipOptions
from urteil.harness.clients.spec import ClientSpec, consumer_config, fetch_limits, own_id
from urteil.harness.clients.stop import Stop, handle_signal
from urteil.harness.clients.workload_kinds import member_count
from urteil.harness.evidence.journal import (
    IDLE_NS,
    Assigned,
    Commit,
    CommitEntry,
    Committed,
    JournalWriter,
    Poll,
    Slice,
)

COMMIT_TIMEOUT_MS = 5_000
PAUSE_WAIT_S = 0.05
COMMIT_REFUSALS = (
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
"""Errors of a coordinator that stored nothing, returned before it appends, and errors with which
kafka-python itself does not send (CommitFailedError, RebalanceInProgressError)."""

ASSIGNORS = {"range": RangePartitionAssignor, "cooperative": CooperativeStickyAssignor}
LOST_POSITION = (LogTruncationError, NoOffsetForPartitionError, OffsetOutOfRangeError)


def member_config(spec: ClientSpec) -> dict[str, Any]:
    """The settings of a group member."""
    options = MembershipOptions.of(spec.workload)
    most = GroupOptions.of(spec.workload).max_poll_records
    config = consumer_config(spec) | fetch_limits(spec)
    config |= {
        "session_timeout_ms": options.session_timeout_ms,
        "heartbeat_interval_ms": options.heartbeat_interval_ms,
        "max_poll_interval_ms": options.max_poll_interval_ms,
        "partition_assignment_strategy": [ASSIGNORS[options.assignor]],
        "group_instance_id": spec.instance,
    }
    return config if most is None else config | {"max_poll_records": most}


def static_instance(spec: ClientSpec) -> str | None:
    """`group.instance.id` of a static member, the same for all its sessions; None for other
    members."""
    is_static = GroupOptions.of(spec.workload).static
    return own_id(spec.workload, spec.client) if is_static else None


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Journals assignments and revocations; kafka-python calls it within a poll."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._member.note_assignment("assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._member.note_assignment("revoked", revoked)

    def on_partitions_lost(self, lost: Any) -> None:
        self._member.note_assignment("lost", lost)


class CommitAttempts:
    """Counts how often one commit was sent: kafka-python repeats it and reports only the last
    error.

    A repeated commit may take effect twice, the second time after later commits.
    """

    def __init__(self, kafka: KafkaConsumer) -> None:
        self.count = 0
        self._send = kafka._coordinator._send_offset_commit_request
        kafka._coordinator._send_offset_commit_request = self._count_and_send

    def outcome(self, error: KafkaError) -> str:
        """`fail` if the only request of a commit was rejected before anything was written, or none
        was sent."""
        refused = self.count == 1 and isinstance(error, COMMIT_REFUSALS)
        return "fail" if refused or not self.count else "info"

    def repetition_note(self) -> str | None:
        """The note in the evidence for an acknowledged commit that was repeated."""
        return f"{self.count} attempts" if self.count > 1 else None

    async def _count_and_send(self, offsets: Any) -> Any:
        self.count += 1
        return await self._send(offsets)


@dataclass(frozen=True, slots=True)
class EndedMembership:
    """The identity and the positions of a member in a generation that has ended."""

    generation: int
    member_id: str
    positions: dict[TopicPartition, int]


@contextmanager
def commit_identity(kafka: KafkaConsumer, generation: int, member_id: str) -> Iterator[None]:
    """Send commits under another generation and member id. The real membership, which a rejection
    of such a commit would end, stays."""
    coordinator = kafka._coordinator
    saved = coordinator.generation_if_stable, coordinator.reset_generation
    old = Generation(generation, member_id, None)
    coordinator.generation_if_stable = lambda: old
    coordinator.reset_generation = lambda **_: None
    try:
        yield
    finally:
        coordinator.generation_if_stable, coordinator.reset_generation = saved


def observe_assignments(coordinator: Any, note: Callable[[dict[str, Any]], None]) -> None:
    """Pass the assignment that a group leader makes to `note`, by member id."""
    perform = coordinator._perform_assignment

    def perform_and_note(*joined: Any) -> dict[str, Any]:
        assignments: dict[str, Any] = perform(*joined)
        note(assignments)
        return assignments

    coordinator._perform_assignment = perform_and_note


class PollingPause:
    """`on` from SIGUSR1 until SIGUSR2."""

    def __init__(self) -> None:
        self.on = False
        handle_signal(signal.SIGUSR1, lambda: setattr(self, "on", True))
        handle_signal(signal.SIGUSR2, lambda: setattr(self, "on", False))


class Member:
    """One group member. Each assignment of a partition begins another pass."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._run = spec.run
        self._copies = spec.copies()
        self._journal = journal
        self._kafka = KafkaConsumer(**member_config(spec))
        fix_connections(self._kafka._manager)
        retry_missing_partitions(self._kafka._fetcher)
        drop_corrupt_response(self._kafka._fetcher)
        finish_joining(self._kafka._coordinator)
        forget_lost_positions(self._kafka._coordinator)
        observe_assignments(self._kafka._coordinator, self._note_assignments)
        self._kafka.subscribe([topic.name for topic in spec.topics], listener=_Listener(self))
        self._attempts = CommitAttempts(self._kafka)
        self._positions = CommittedOffsetReader(self._kafka, journal)
        options = GroupOptions.of(spec.workload)
        self._zombie = options.zombie_commits
        self._ended_memberships: list[EndedMembership] = []
        self._commits_before = options.commit == "before"
        self._fresh: list[TopicPartition] = []
        self._event: dict[TopicPartition, str] = {}
        self._position: dict[TopicPartition, int] = {}
        self._pass = 0
        self._polls = 0
        self._noted_ns = 0
        self._damaged: tuple[Any, ...] = ()
        self._commits = 0

    def note_assignment(self, event: str, partitions: Any) -> None:
        generation, member_id = self._identity()
        pairs = sorted((tp.topic, tp.partition) for tp in partitions)
        self._journal.write(Assigned(time.monotonic_ns(), event, generation, member_id, pairs))
        self._keep_membership(event, generation, member_id)
        for tp in partitions:
            self._position.pop(tp, None)
        self._fresh = [tp for tp in self._fresh if tp not in partitions]
        if event == "assigned":
            self._pass += 1
            self._fresh += sorted(partitions)
            self._event.update(dict.fromkeys(partitions, "rebalance"))

    def _note_assignments(self, assignments: dict[str, Any]) -> None:
        """As group leader, journal the assignment of each member before it is sent."""
        generation, _ = self._identity()
        for member_id, assignment in assignments.items():
            pairs = sorted((tp.topic, tp.partition) for tp in assignment.partitions())
            self._journal.write(
                Assigned(time.monotonic_ns(), "given", generation, member_id, pairs)
            )

    def _keep_membership(self, event: str, generation: int | None, member_id: str | None) -> None:
        """Keep the positions at the end of a generation, for a commit as a zombie."""
        if self._zombie and event == "revoked" and self._position and generation and member_id:
            self._ended_memberships.append(
                EndedMembership(generation, member_id, dict(self._position))
            )

    def commit_as_zombie(self) -> None:
        """Commit again in each generation that has ended; the coordinator must reject it."""
        generation, _ = self._identity()
        for ended in [
            ended_membership
            for ended_membership in self._ended_memberships
            if ended_membership.generation < (generation or 0)
        ]:
            self._ended_memberships.remove(ended)
            with commit_identity(self._kafka, ended.generation, ended.member_id):
                self._commit(ended.positions, ended.generation, ended.member_id)

    def step(self) -> None:
        """Poll, process, commit."""
        invoke_ns = time.monotonic_ns()
        try:
            records = self._kafka.poll(timeout_ms=POLL_TIMEOUT_MS)
        except LOST_POSITION as error:
            self._note_poll(invoke_ns, "fail", type(error).__name__, [])
            self._reset(error)
            return
        except CorruptRecordError as damaged:
            if invoke_ns - self._noted_ns > IDLE_NS or damaged.args != self._damaged:
                place = damaged_slice(damaged, {damaged.args[0]: self._pass})
                self._note_poll(invoke_ns, "fail", type(damaged).__name__, [place])
            self._damaged = damaged.args
            return
        except KafkaError as error:
            self._note_poll(invoke_ns, "info", type(error).__name__, [])
            return
        if records:
            self._process(invoke_ns, records)
        elif invoke_ns - self._noted_ns > IDLE_NS:
            self._note_poll(invoke_ns, "ok", None, [])
        if self._fresh:
            generation, member_id = self._identity()
            self._positions.read(self._fresh, generation, member_id)
            self._fresh = []
            self.commit_as_zombie()

    def _process(self, invoke_ns: int, records: dict[TopicPartition, list[Any]]) -> None:
        if self._commits_before:
            self._commit({tp: fetched[-1].offset + 1 for tp, fetched in records.items()})
        slices = [self._slice(tp, fetched) for tp, fetched in records.items()]
        self._note_poll(invoke_ns, "ok", None, slices)
        if not self._commits_before:
            self._commit({tp: self._position[tp] for tp in records})

    def close(self) -> None:
        """Leave the group."""
        self._kafka.close(autocommit=False, timeout_ms=COMMIT_TIMEOUT_MS)

    def _identity(self) -> tuple[int | None, str | None]:
        known = self._kafka.group_metadata()
        return known.generation_id, known.member_id or None

    def _slice(self, tp: TopicPartition, records: list[Any]) -> Slice:
        before = self._position.get(tp)
        after = records[-1].offset + 1
        self._position[tp] = after
        event = self._event.pop(tp, None)
        results = [
            journal_entry(self._run, record, copied=tp.topic in self._copies) for record in records
        ]
        return Slice(tp.topic, tp.partition, self._pass, before, after, event, results)

    def _reset(self, error: KafkaError) -> None:
        """Continue where the log diverged, or from its start, because the promise is at
        least once."""
        for tp, diverged in lost_positions(error).items():
            try:
                start = self._kafka.beginning_offsets([tp], timeout_ms=COMMIT_TIMEOUT_MS)[tp]
                self._kafka.seek(tp, start if diverged is None else diverged.offset)
            except (KafkaError, AssertionError) as again:
                self._note_poll(time.monotonic_ns(), "info", type(again).__name__, [])
                continue
            self._position.pop(tp, None)
            self._event[tp] = "reset"  # also right after an assignment: the position moved since

    def _note_poll(
        self, invoke_ns: int, outcome: str, error: str | None, slices: list[Slice]
    ) -> None:
        self._polls += 1
        generation, _ = self._identity()
        self._noted_ns = time.monotonic_ns()
        self._journal.write(
            Poll(self._polls, invoke_ns, self._noted_ns, outcome, error, generation, slices)
        )

    def _commit(
        self,
        positions: dict[TopicPartition, int],
        generation: int | None = None,
        member_id: str | None = None,
    ) -> None:
        """Commit in the current generation, or in the given one."""
        self._commits += 1
        if generation is None:
            generation, member_id = self._identity()
        entries = [
            CommitEntry(tp.topic, tp.partition, offset, self._position.get(tp, -1))
            for tp, offset in positions.items()
        ]
        self._journal.write(
            Commit(self._commits, time.monotonic_ns(), generation, member_id, entries)
        )
        outcome, error_name = "ok", None
        self._attempts.count = 0
        try:
            self._kafka.commit(
                {tp: OffsetAndMetadata(o, "", -1) for tp, o in positions.items()},
                timeout_ms=COMMIT_TIMEOUT_MS,
            )
        except KafkaError as error:
            outcome, error_name = self._attempts.outcome(error), type(error).__name__
        else:
            error_name = self._attempts.repetition_note()
        self._journal.write(Committed(self._commits, time.monotonic_ns(), outcome, error_name))


class AnyMember(Protocol):
    """A group member of any library."""

    def step(self) -> None: ...
    def close(self) -> None: ...


def make_member(spec: ClientSpec, journal: JournalWriter) -> AnyMember:
    """A member of the library that the workload names."""
    if KIND.library(spec.workload) == CONFLUENT:
        from urteil.harness.clients.libraries.confluent_consumer import Member as ConfluentMember

        return ConfluentMember(spec, journal)
    return Member(spec, journal)


def consume_in_group(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Poll until the stop is requested. Between SIGUSR1 and SIGUSR2 only heartbeat."""
    if KIND.library(spec.workload) == VERIFIABLE:
        from urteil.harness.clients.libraries import verifiable_consumer

        verifiable_consumer.consume_in_group(spec, journal, stop)
        return
    pause = PollingPause()
    member = make_member(spec, journal)
    while not stop.is_set():
        if pause.on:
            stop.wait(PAUSE_WAIT_S)
        else:
            member.step()
    member.close()


KIND = ClientKind(
    name="group",
    about="A member of a consumer group: polls, processes and commits.",
    needs=lambda load: (STATIC_MEMBERS,) if GroupOptions.of(load).static else (),
    stage=Stage.READS,
    judged_by=("two_owners", "commit_beyond_processed", "zombie_commit"),
    prefix="g",
    count=lambda scenario: member_count(scenario.workload),
    work=consume_in_group,
    options=(GroupOptions, MembershipOptions, FetchOptions),
    libraries=(KAFKA_PYTHON, CONFLUENT, VERIFIABLE),
    group=lambda spec: spec.workload.group,
    is_member=True,
    instance=static_instance,
    handles_signals=True,
)

if __name__ == "__main__":
    run_client(KIND)
