"""An assigned consumer that journals its reads: the common part of live and final readers."""

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

from urteil.harness.clients.kafka_python_fixes import (
    drop_corrupt_response,
    fix_connections,
    retry_missing_partitions,
)
from urteil.harness.clients.payload import client_timestamp_ms, decode, decode_copy, key_text
from urteil.harness.clients.spec import ClientSpec
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
"""The query for a partition's end by isolation: high watermark or last stable offset."""


class JournalingConsumer:
    """Reads assigned partitions from explicit positions, pass by pass.

    A pass is a contiguous read without a seek. When a position is lost (truncation, out of range),
    the pass ends and another begins where reading can continue.
    """

    def __init__(
        self,
        spec: ClientSpec,
        journal: JournalWriter,
        config: Mapping[str, Any],
        *,
        first_pass: int = 0,
    ) -> None:
        """`config` are the settings of kafka-python's consumer."""
        self._run = spec.run
        self._isolation = spec.isolation
        self._copies = spec.copies()
        self._journal = journal
        self._kafka = KafkaConsumer(**config)
        fix_connections(self._kafka._manager)
        retry_missing_partitions(self._kafka._fetcher)
        drop_corrupt_response(self._kafka._fetcher)
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
        """Log start offsets. KafkaError if a leader does not respond in time."""
        return self._request_offsets("earliest", partitions)

    def latest(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """End offsets for consumers of this isolation level. KafkaError as above."""
        return self._request_offsets(LAST[self._isolation], partitions)

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
        """End a partition's pass at its position.

        Returns the broker that led a final pass from begin to end; None if the leader changed or is
        unknown.
        """
        leader = self.leader(partition)
        leader = leader if leader == self._leader[partition] else None
        self._journal.write(
            PassEnd(self._pass.pop(partition), partition.topic, partition.partition,
                    time.monotonic_ns(), self._position[partition], complete, leader)
        )  # fmt: skip
        return leader

    def leader(self, partition: TopicPartition) -> int | None:
        """The leader by this client's metadata: only its responses can hold records."""
        return self._kafka._cluster.leader_for_partition(partition)  # type: ignore[no-any-return]

    def position(self, partition: TopicPartition) -> int:
        """The next offset to read, beyond control batches and gaps that were fetched."""
        state = self._kafka._subscription.assignment.get(partition)
        known = state.position.offset if state is not None and state.position else None
        if known is not None and known > self._position[partition]:
            self._position[partition] = known
        return self._position[partition]

    def open_passes(self) -> list[TopicPartition]:
        """Partitions with an open pass."""
        return list(self._pass)

    def poll(self) -> int:
        """Poll once and journal the result. Returns the number of records."""
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
            slices = [self._slice(tp, fetched) for tp, fetched in records.items()]
            self._note_poll(invoke_ns, "ok", None, slices)
        elif invoke_ns - self._noted_ns > IDLE_NS:
            self._note_poll(invoke_ns, "ok", None, [])
        return sum(len(fetched) for fetched in records.values())

    def note_failure(self, error: KafkaError) -> None:
        """Journal a failed request, so that the client's activity is visible."""
        self._note_poll(time.monotonic_ns(), "info", type(error).__name__, [])

    def close(self) -> None:
        self._kafka.close(autocommit=False, timeout_ms=2_000)

    def _request_offsets(
        self, query: str, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int]:
        request = self._kafka.beginning_offsets if query == "earliest" else self._kafka.end_offsets
        invoke_ns = time.monotonic_ns()
        answers: dict[TopicPartition, int] = request(partitions, timeout_ms=OFFSETS_TIMEOUT_MS)
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
            [journal_entry(self._run, record, copied=tp.topic in self._copies)
             for record in records],
        )  # fmt: skip

    def _reset(self, error: KafkaError) -> None:
        """Continue at the end (or the start) of the log in a new pass; in a final pass if the log
        lost its beginning since the pass began."""
        lost = lost_positions(error)
        affected = [tp for tp in lost if tp in self._pass]
        try:
            starts, ends = self.earliest(affected), self.latest(affected)
        except KafkaError as again:
            self.note_failure(again)
            return
        for tp in affected:
            diverged = lost[tp]
            position = self._position[tp] if diverged is None else diverged.offset
            goal = self._goal[tp] if diverged is None and starts[tp] > position else None
            self.end(tp, complete=True)
            start = max(starts[tp], min(position, ends[tp]))
            to_offset = None if goal is None else max(start, goal)
            self.begin(tp, start, to_offset, final=goal is not None)
            self._event[tp] = "reset"


def lost_positions(error: KafkaError) -> dict[TopicPartition, Any]:
    """Partitions whose position is invalid, with the divergent offset of their log (None:
    unknown)."""
    if isinstance(error, LogTruncationError):
        return dict(error.divergent_offsets)
    return dict.fromkeys(error.args[0] if error.args else [])


def damaged_slice(error: KafkaError, passes: Mapping[TopicPartition, int]) -> Slice:
    """The slice of a poll that met a batch with a wrong checksum (see `drop_corrupt_response`)."""
    partition, offset = error.args
    pass_ = passes.get(partition, 0)
    return Slice(partition.topic, partition.partition, pass_, offset, None, None, [])


def journal_entry(run: str, record: Any, *, copied: bool = False) -> Got:
    """A record of kafka-python as a journal entry."""
    if copied:
        payload = decode_copy(run, record.value, record.key)
    else:
        payload = decode(run, record.value, record.key, record.headers, client_timestamp_ms(record))
    return Got(
        record.offset, key_text(record.key), payload.value_id, payload.intact,
        record.leader_epoch, record.timestamp,
    )  # fmt: skip
