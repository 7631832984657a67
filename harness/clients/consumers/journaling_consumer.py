"""An assigned consumer that journals what it reads: the common part of live and final readers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import (
    CorruptRecordError,
    KafkaError,
    LogTruncationError,
    OffsetOutOfRangeError,
)

from urteil.harness.clients.kafka_python_fixes import ask_for_all, back_off, fetch_again
from urteil.harness.clients.payload import decode, decode_copy, key_text, of_client_ms
from urteil.harness.clients.spec import ClientSpec, consumer_config
from urteil.harness.evidence.journal import (
    IDLE_NS,
    Got,
    JournalWriter,
    OffsetAnswer,
    PassBegin,
    PassEnd,
    Poll,
    Slice,
)

POLL_TIMEOUT_MS = 200
OFFSETS_TIMEOUT_MS = 10_000
LAST = {"read_uncommitted": "latest", "read_committed": "stable"}
"""The end of a partition by isolation: its high watermark, or its last stable offset."""


class Sweeper:
    """Reads assigned partitions from positions that only we set, pass by pass.

    A pass is a stretch read in order without a seek. When a position is lost (truncation, out of
    range) its pass ends there and another begins where reading can go on.
    """

    def __init__(self, spec: ClientSpec, journal: JournalWriter, *, first_pass: int = 0) -> None:
        self._run = spec.run
        self._isolation = spec.isolation
        self._copies = spec.copies()
        self._journal = journal
        self._kafka = KafkaConsumer(**consumer_config(spec))
        back_off(self._kafka._manager)
        ask_for_all(self._kafka._fetcher)
        fetch_again(self._kafka._fetcher)
        self._next_pass = first_pass
        self._polls = 0
        self._noted_ns = 0
        self._damaged: tuple[Any, ...] = ()
        self._pass: dict[TopicPartition, int] = {}
        self._position: dict[TopicPartition, int] = {}
        self._leader: dict[TopicPartition, int | None] = {}
        self._goal: dict[TopicPartition, int | None] = {}
        self._event: dict[TopicPartition, str] = {}

    def assign(self, partitions: list[TopicPartition]) -> None:
        self._kafka.assign(partitions)

    def earliest(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Log start offsets. KafkaError when a leader does not answer in time."""
        return self._ask("earliest", partitions)

    def latest(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Ends that consumers of this isolation see. KafkaError as above."""
        return self._ask(LAST[self._isolation], partitions)

    def begin(
        self, partition: TopicPartition, offset: int, to_offset: int | None, *, final: bool
    ) -> None:
        """Begin a pass at `offset`."""
        number = self._next_pass
        self._next_pass += 1
        self._pass[partition], self._position[partition] = number, offset
        self._leader[partition] = self.leader(partition) if final else None
        self._goal[partition] = to_offset if final else None
        self._kafka.seek(partition, offset)
        self._journal.write(
            PassBegin(number, partition.topic, partition.partition, time.monotonic_ns(), offset,
                      to_offset, self._isolation, final)
        )  # fmt: skip

    def end(self, partition: TopicPartition, *, complete: bool) -> int | None:
        """End a partition's pass where it stands.

        The broker that led a final pass from begin to end; None when it changed or is not known.
        """
        leader = self.leader(partition)
        leader = leader if leader == self._leader[partition] else None
        self._journal.write(
            PassEnd(self._pass.pop(partition), partition.topic, partition.partition,
                    time.monotonic_ns(), self._position[partition], complete, leader)
        )  # fmt: skip
        return leader

    def leader(self, partition: TopicPartition) -> int | None:
        """Who leads by this client's metadata: only that broker's answers can be records."""
        return self._kafka._cluster.leader_for_partition(partition)  # type: ignore[no-any-return]

    def position(self, partition: TopicPartition) -> int:
        """The next offset to read, past control batches and gaps once they were fetched."""
        state = self._kafka._subscription.assignment.get(partition)
        known = state.position.offset if state is not None and state.position else None
        if known is not None and known > self._position[partition]:
            self._position[partition] = known
        return self._position[partition]

    def swept(self) -> list[TopicPartition]:
        """Partitions with a pass under way."""
        return list(self._pass)

    def poll(self) -> int:
        """Poll once and journal it; how many records came."""
        invoke_ns = time.monotonic_ns()
        try:
            records = self._kafka.poll(timeout_ms=POLL_TIMEOUT_MS)
        except (OffsetOutOfRangeError, LogTruncationError) as error:
            self._note_poll(invoke_ns, "fail", type(error).__name__, [])
            self._reset(error)
            return 0
        except CorruptRecordError as damaged:
            if invoke_ns - self._noted_ns > IDLE_NS or damaged.args != self._damaged:
                place = damaged_slice(damaged, self._pass)
                self._note_poll(invoke_ns, "fail", type(damaged).__name__, [place])
            self._damaged = damaged.args
            return 0
        except KafkaError as error:
            self._note_poll(invoke_ns, "info", type(error).__name__, [])
            return 0
        if records:
            slices = [self._slice(tp, found) for tp, found in records.items()]
            self._note_poll(invoke_ns, "ok", None, slices)
        elif invoke_ns - self._noted_ns > IDLE_NS:
            self._note_poll(invoke_ns, "ok", None, [])
        return sum(len(found) for found in records.values())

    def failed(self, error: KafkaError) -> None:
        """Note that this client lives and asks, of no partition of its own."""
        self._note_poll(time.monotonic_ns(), "info", type(error).__name__, [])

    def close(self) -> None:
        self._kafka.close(autocommit=False, timeout_ms=2_000)

    def _ask(self, query: str, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        ask = self._kafka.beginning_offsets if query == "earliest" else self._kafka.end_offsets
        invoke_ns = time.monotonic_ns()
        answers: dict[TopicPartition, int] = ask(partitions, timeout_ms=OFFSETS_TIMEOUT_MS)
        complete_ns = time.monotonic_ns()
        for tp, offset in answers.items():
            self._journal.write(
                OffsetAnswer(invoke_ns, complete_ns, query, tp.topic, tp.partition, offset,
                             self.leader(tp), None)
            )  # fmt: skip
        return answers

    def _note_poll(
        self, invoke_ns: int, outcome: str, error: str | None, slices: list[Slice]
    ) -> None:
        self._polls += 1
        self._noted_ns = time.monotonic_ns()
        self._journal.write(
            Poll(self._polls, invoke_ns, self._noted_ns, outcome, error, None, slices)
        )

    def _slice(self, tp: TopicPartition, records: list[Any]) -> Slice:
        before = self._position[tp]
        self._position[tp] = records[-1].offset + 1
        return Slice(
            tp.topic, tp.partition, self._pass[tp], before, self._position[tp],
            self._event.pop(tp, None),
            [got(self._run, record, copied=tp.topic in self._copies) for record in records],
        )  # fmt: skip

    def _reset(self, error: KafkaError) -> None:
        """Go on where the log ends now (or starts), in a new pass: a final one where the log has
        lost its beginning since it began."""
        lost = lost_positions(error)
        affected = [tp for tp in lost if tp in self._pass]
        try:
            starts, ends = self.earliest(affected), self.latest(affected)
        except KafkaError as again:
            self.failed(again)
            return
        for tp in affected:
            diverged = lost[tp]
            wanted = self._position[tp] if diverged is None else diverged.offset
            goal = self._goal[tp] if diverged is None and starts[tp] > wanted else None
            self.end(tp, complete=True)
            start = max(starts[tp], min(wanted, ends[tp]))
            to_offset = None if goal is None else max(start, goal)
            self.begin(tp, start, to_offset, final=goal is not None)
            self._event[tp] = "reset"


def lost_positions(error: KafkaError) -> dict[TopicPartition, Any]:
    """Partitions whose position is gone, with where their log diverged (None: not known)."""
    if isinstance(error, LogTruncationError):
        return dict(error.divergent_offsets)
    return dict.fromkeys(error.args[0] if error.args else [])


def damaged_slice(error: KafkaError, passes: Mapping[TopicPartition, int]) -> Slice:
    """Where a poll met a batch with a wrong checksum, that went no further (see `fetch_again`)."""
    partition, offset = error.args
    pass_ = passes.get(partition, 0)
    return Slice(partition.topic, partition.partition, pass_, offset, None, None, [])


def got(run: str, record: Any, *, copied: bool = False) -> Got:
    """A record of kafka-python as the journal holds it."""
    if copied:
        payload = decode_copy(run, record.value, record.key)
    else:
        payload = decode(run, record.value, record.key, record.headers, of_client_ms(record))
    return Got(
        record.offset, key_text(record.key), payload.value_id, payload.intact,
        record.leader_epoch, record.timestamp,
    )  # fmt: skip
