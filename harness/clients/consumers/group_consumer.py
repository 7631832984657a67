"""A member of a consumer group that commits what it has processed.

    python -m urteil.harness.clients.consumers.group_consumer SPEC.json

Processing a record is journaling it. Each poll's positions are committed after it was processed
(or before, by the option `commit`), one request at a time; after each rebalance the committed
positions are fetched and journaled.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
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

from urteil.harness.clients.client_main import Stop, hear, run_client
from urteil.harness.clients.consumers.journaling_consumer import (
    POLL_TIMEOUT_MS,
    damaged_slice,
    got,
    lost_positions,
)
from urteil.harness.clients.kafka_python_fixes import (
    ask_for_all,
    back_off,
    fetch_again,
    finish_joining,
)
from urteil.harness.clients.offsets.committed_offset_reader import PositionReader
from urteil.harness.clients.spec import ClientSpec, consumer_config
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
STALL_WAIT_S = 0.05
COMMIT_REFUSALS = (
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    IllegalGenerationError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
"""Answers of a coordinator that stored nothing, given before it appends (and kafka-python's own
refusal to send: CommitFailedError, RebalanceInProgressError)."""

LOST_POSITION = (LogTruncationError, NoOffsetForPartitionError, OffsetOutOfRangeError)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Journals what is given and taken; called by kafka-python within a poll."""

    def __init__(self, member: Member) -> None:
        self._member = member

    def on_partitions_assigned(self, assigned: Any) -> None:
        self._member.note_assignment("assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._member.note_assignment("revoked", revoked)

    def on_partitions_lost(self, lost: Any) -> None:
        self._member.note_assignment("lost", lost)


class CommitAttempts:
    """How often one commit was sent: kafka-python repeats it inside, and tells the last error.

    A commit that was repeated may take effect twice, the second time after later ones.
    """

    def __init__(self, kafka: KafkaConsumer) -> None:
        self.count = 0
        self._send = kafka._coordinator._send_offset_commit_request
        kafka._coordinator._send_offset_commit_request = self._count_and_send

    def outcome(self, error: KafkaError) -> str:
        """`fail` when the one request of a commit was refused before anything was written, or
        none was sent."""
        refused = self.count == 1 and isinstance(error, COMMIT_REFUSALS)
        return "fail" if refused or not self.count else "info"

    def told(self) -> str | None:
        """What the evidence says of a commit that was acknowledged but had been repeated."""
        return f"{self.count} attempts" if self.count > 1 else None

    async def _count_and_send(self, offsets: Any) -> Any:
        self.count += 1
        return await self._send(offsets)


@dataclass(frozen=True, slots=True)
class Ghost:
    """A member of a generation that ended, with where it stood."""

    generation: int
    member_id: str
    positions: dict[TopicPartition, int]


@contextmanager
def as_member(kafka: KafkaConsumer, generation: int, member_id: str) -> Iterator[None]:
    """Let commits go out under another generation and member id; the membership itself, which a
    refusal of such a commit would end, stays as it is."""
    coordinator = kafka._coordinator
    kept = coordinator.generation_if_stable, coordinator.reset_generation
    old = Generation(generation, member_id, None)
    coordinator.generation_if_stable = lambda: old
    coordinator.reset_generation = lambda **_: None
    try:
        yield
    finally:
        coordinator.generation_if_stable, coordinator.reset_generation = kept


def tell_given(coordinator: Any, note: Callable[[dict[str, Any]], None]) -> None:
    """Let `note` know what a leader of its group gives to its members, by their ids."""
    perform = coordinator._perform_assignment

    def perform_and_tell(*joined: Any) -> dict[str, Any]:
        given: dict[str, Any] = perform(*joined)
        note(given)
        return given

    coordinator._perform_assignment = perform_and_tell


class Stall:
    """On from SIGUSR1 until SIGUSR2."""

    def __init__(self) -> None:
        self.on = False
        hear(signal.SIGUSR1, lambda: setattr(self, "on", True))
        hear(signal.SIGUSR2, lambda: setattr(self, "on", False))


class Member:
    """One group member. Each assignment of a partition begins another stretch of reading."""

    def __init__(self, spec: ClientSpec, journal: JournalWriter) -> None:
        self._run = spec.run
        self._journal = journal
        self._kafka = KafkaConsumer(**consumer_config(spec))
        back_off(self._kafka._manager)
        ask_for_all(self._kafka._fetcher)
        fetch_again(self._kafka._fetcher)
        finish_joining(self._kafka._coordinator)
        tell_given(self._kafka._coordinator, self._note_given)
        self._kafka.subscribe([topic.name for topic in spec.topics], listener=_Listener(self))
        self._attempts = CommitAttempts(self._kafka)
        self._positions = PositionReader(self._kafka, journal)
        self._zombie = spec.workload.options.get("zombie_commits") == "true"
        self._ghosts: list[Ghost] = []
        self._commits_before = spec.workload.options.get("commit") == "before"
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
        self._bury(event, generation, member_id)
        for tp in partitions:
            self._position.pop(tp, None)
        self._fresh = [tp for tp in self._fresh if tp not in partitions]
        if event == "assigned":
            self._pass += 1
            self._fresh += sorted(partitions)
            self._event.update(dict.fromkeys(partitions, "rebalance"))

    def _note_given(self, given: dict[str, Any]) -> None:
        """As the leader, what each member is to have; kept before it is sent."""
        generation, _ = self._identity()
        for member_id, assignment in given.items():
            pairs = sorted((tp.topic, tp.partition) for tp in assignment.partitions())
            self._journal.write(
                Assigned(time.monotonic_ns(), "given", generation, member_id, pairs)
            )

    def _bury(self, event: str, generation: int | None, member_id: str | None) -> None:
        """Keep what a zombie would commit: where this member stands when its generation ends."""
        if self._zombie and event == "revoked" and self._position and generation and member_id:
            self._ghosts.append(Ghost(generation, member_id, dict(self._position)))

    def haunt(self) -> None:
        """Commit once more in every generation that has ended: it must be refused."""
        generation, _ = self._identity()
        for ghost in [one for one in self._ghosts if one.generation < (generation or 0)]:
            self._ghosts.remove(ghost)
            with as_member(self._kafka, ghost.generation, ghost.member_id):
                self._commit(ghost.positions, ghost.generation, ghost.member_id)

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
            self.haunt()

    def _process(self, invoke_ns: int, records: dict[TopicPartition, list[Any]]) -> None:
        if self._commits_before:
            self._commit({tp: found[-1].offset + 1 for tp, found in records.items()})
        slices = [self._slice(tp, found) for tp, found in records.items()]
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
        found = [got(self._run, record) for record in records]
        return Slice(tp.topic, tp.partition, self._pass, before, after, event, found)

    def _reset(self, error: KafkaError) -> None:
        """Go on where the log diverged, or from its start: at least once is the promise."""
        for tp, diverged in lost_positions(error).items():
            try:
                start = self._kafka.beginning_offsets([tp], timeout_ms=COMMIT_TIMEOUT_MS)[tp]
                self._kafka.seek(tp, start if diverged is None else diverged.offset)
            except (KafkaError, AssertionError) as again:
                self._note_poll(time.monotonic_ns(), "info", type(again).__name__, [])
                continue
            self._position.pop(tp, None)
            self._event[tp] = "reset"  # also where it has just been assigned: it moved since

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
        """Commit as the member that it is, or as the one that it was."""
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
            error_name = self._attempts.told()
        self._journal.write(Committed(self._commits, time.monotonic_ns(), outcome, error_name))


class Stepping(Protocol):
    """A group member of any library."""

    def step(self) -> None: ...
    def close(self) -> None: ...


def make_member(spec: ClientSpec, journal: JournalWriter) -> Stepping:
    """A member of the library that the workload names, where there is one."""
    if spec.workload.client == "confluent-kafka":
        from urteil.harness.clients.consumers.confluent_consumer import Member as Confluent

        return Confluent(spec, journal)
    return Member(spec, journal)


def consume_in_group(spec: ClientSpec, journal: JournalWriter, stop: Stop) -> None:
    """Poll until the end is asked for; between SIGUSR1 and SIGUSR2 stand still, but heartbeat."""
    if spec.workload.client == "verifiable":
        from urteil.harness.clients.consumers import verifiable_consumer

        verifiable_consumer.consume_in_group(spec, journal, stop)
        return
    stalled = Stall()
    member = make_member(spec, journal)
    while not stop.asked():
        if stalled.on:
            stop.wait(STALL_WAIT_S)
        else:
            member.step()
    member.close()


if __name__ == "__main__":
    run_client(consume_in_group)
