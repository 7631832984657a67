"""The state of the idempotent and transactional producers of a log (KIP-98).

Sources: `ProducerStateManager`, `ProducerStateEntry`, `ProducerAppendInfo`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from urteil.broker.log.txn_index import AbortedTxn
from urteil.broker.wire.batch_header import MAX_SEQUENCE
from urteil.broker.wire.batches import BatchHeader, iter_records
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.primitives import Buffer, CorruptBatch

REMEMBERED_BATCHES = 5
"""The number of batches of a producer that are recognised as duplicates."""

_MARKER_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
_ABORT, _COMMIT = 0, 1


class SentBatch(NamedTuple):
    """One remembered batch of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int

    @property
    def first_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class ProducerEntry:
    """The state of one producer id; -1 means unknown."""

    producer_id: int
    epoch: int = -1
    batches: list[SentBatch] = field(default_factory=list)
    last_timestamp_ms: int = -1
    coordinator_epoch: int = -1
    txn_first_offset: int | None = None

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1

    def copy(self) -> ProducerEntry:
        return ProducerEntry(
            self.producer_id,
            self.epoch,
            self.batches.copy(),
            self.last_timestamp_ms,
            self.coordinator_epoch,
            self.txn_first_offset,
        )

    def duplicate_of(self, header: BatchHeader) -> SentBatch | None:
        """The remembered batch with the same epoch and sequences."""
        if header.producer_epoch != self.epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.last_sequence == last and batch.first_sequence == first:
                return batch
        return None

    def add(self, header: BatchHeader, base_offset: int) -> None:
        """Add a data batch that was appended at `base_offset`."""
        self.enter_epoch(header.producer_epoch)
        if len(self.batches) >= REMEMBERED_BATCHES:
            del self.batches[0]
        delta = header.last_offset_delta
        last_offset = base_offset + delta
        self.batches.append(
            SentBatch(header.last_sequence, last_offset, delta, header.max_timestamp)
        )
        self.last_timestamp_ms = header.max_timestamp

    def enter_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch


@dataclass(frozen=True, slots=True)
class EndMarker:
    """A control batch that ends a transaction."""

    commit: bool
    coordinator_epoch: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class CompletedTxn:
    """A transaction from its first data offset to its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


Refusal = tuple[ErrorCode, str]


class ProducerStates:
    """The state of all producers of one log as of `end_offset` (-1: unknown)."""

    __slots__ = ("_ongoing", "_unreplicated", "end_offset", "entries")

    def __init__(self) -> None:
        self.entries: dict[int, ProducerEntry] = {}
        self.end_offset = -1
        self._ongoing: dict[int, int] = {}
        self._unreplicated: dict[int, int] = {}

    def reset(self, end_offset: int, entries: Iterable[ProducerEntry] = ()) -> None:
        """Replace the state by `entries`, as of `end_offset`."""
        self.entries = {entry.producer_id: entry for entry in entries}
        self.end_offset = end_offset
        self._unreplicated = {}
        self._ongoing = dict(
            sorted(
                (entry.txn_first_offset, entry.producer_id)
                for entry in self.entries.values()
                if entry.txn_first_offset is not None
            )
        )

    def is_open(self, producer_id: int) -> bool:
        """Whether the producer has an open transaction in this log."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.txn_first_offset is not None

    def find_duplicate(self, header: BatchHeader) -> SentBatch | None:
        """The remembered batch of the same producer, epoch and sequences, if there is one."""
        entry = self.entries.get(header.producer_id)
        return entry.duplicate_of(header) if entry else None

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of a transaction that is open or whose marker is not replicated yet."""
        # both are rare: the common log has no transactions at all
        if not self._ongoing and not self._unreplicated:
            return None
        return min((*self._ongoing, *self._unreplicated))

    def on_high_watermark(self, high_watermark: int) -> None:
        """Forget completed transactions whose marker is now replicated: they are stable."""
        if self._unreplicated:
            self._unreplicated = {
                first: last for first, last in self._unreplicated.items() if last >= high_watermark
            }

    def on_log_start(self, log_start_offset: int) -> None:
        self.on_high_watermark(log_start_offset)
        self.end_offset = max(self.end_offset, log_start_offset)

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers without an open transaction and with an old last batch."""
        expired = [
            entry.producer_id
            for entry in self.entries.values()
            if is_expired(entry, now_ms, expiration_ms)
        ]
        for producer_id in expired:
            del self.entries[producer_id]

    def stable_offset_after(self, txn: CompletedTxn) -> int:
        """The last stable offset right after the marker of `txn`. Transactions that began after the
        marker do not count; they may be in `_ongoing` because an append is merged as a whole."""
        others = (first for first in self._ongoing if first != txn.first_offset)
        return min(next(others, txn.last_offset + 1), txn.last_offset + 1)

    def complete(self, txn: CompletedTxn) -> AbortedTxn | None:
        """End a transaction; return its entry for the transaction index if it was aborted."""
        stable = self.stable_offset_after(txn)
        self._ongoing.pop(txn.first_offset, None)
        self._unreplicated[txn.first_offset] = txn.last_offset
        if not txn.aborted:
            return None
        return AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, stable)

    def add_plain_batch(self, header: BatchHeader) -> None:
        """Add a non-transactional batch of the log without checks."""
        entry = self.entries.get(header.producer_id)
        if entry is None:
            entry = self.entries[header.producer_id] = ProducerEntry(header.producer_id)
        entry.add(header, header.base_offset)

    def merge(self, staged: StagedBatches) -> list[AbortedTxn]:
        """Adopt staged batches after they were written; return the aborted transactions, in
        order."""
        self.entries.update(staged.entries)
        for first, producer_id in staged.begun:
            self._ongoing[first] = producer_id
        ended = [self.complete(txn) for txn in staged.completed]
        return [aborted for aborted in ended if aborted is not None]


def is_expired(entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
    return entry.txn_first_offset is None and now_ms - entry.last_timestamp_ms >= expiration_ms


class StagedBatches:
    """The batches of one append, checked against the producer state but not yet part of it.

    `check_sequences` (a client's append): sequences must be consecutive. `trust` (replication,
    recovery): batches that the leader accepted are not checked.
    """

    __slots__ = ("_check", "_producers", "_trust", "begun", "completed", "entries", "verified")

    def __init__(
        self, producers: ProducerStates, *, check_sequences: bool, trust: bool = False
    ) -> None:
        self._producers = producers
        self._check = check_sequences
        self._trust = trust
        self.entries: dict[int, ProducerEntry] = {}
        self.begun: list[tuple[int, int]] = []
        self.completed: list[CompletedTxn] = []
        self.verified: set[int] = set()  # their transaction has a batch or a marker in this append

    def add(self, header: BatchHeader, base_offset: int, data: Buffer) -> Refusal | None:
        """Check and stage a batch that will get `base_offset`; a refused batch is not staged."""
        entry = self._entry(header.producer_id)
        known_epoch = entry.epoch
        if header.producer_epoch < known_epoch and not self._trust:
            return ErrorCode.INVALID_PRODUCER_EPOCH, (
                f"Epoch of producer {header.producer_id} at offset {base_offset} is "
                f"{header.producer_epoch}, which is smaller than the last seen epoch {known_epoch}"
            )
        if header.is_control:
            self.verified.add(header.producer_id)
            return self._add_marker(entry, header, base_offset, data)
        if self._check and not _is_next_sequence(entry, header):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, (
                f"Out of order sequence number for producer {header.producer_id} at offset "
                f"{base_offset}: {header.base_sequence} (incoming seq. number), "
                f"{entry.last_sequence} (current end sequence number)"
            )
        if entry.txn_first_offset is not None and not header.is_transactional and not self._trust:
            return ErrorCode.INVALID_TXN_STATE, (
                f"Expected transactional write from producer {header.producer_id} "
                f"at offset {base_offset}"
            )
        entry.add(header, base_offset)
        if header.is_transactional:
            self.verified.add(header.producer_id)
        if entry.txn_first_offset is None and header.is_transactional:
            entry.txn_first_offset = base_offset
            self.begun.append((base_offset, header.producer_id))
        return None

    def is_stale(self, header: BatchHeader) -> bool:
        """Whether the batch has an older producer epoch, which `add` refuses."""
        known = self._producers.entries.get(header.producer_id)
        return known is not None and header.producer_epoch < known.epoch

    def is_open(self, producer_id: int) -> bool:
        """Whether the producer has an open transaction in this log."""
        entry = self.entries.get(producer_id) or self._producers.entries.get(producer_id)
        return entry is not None and entry.txn_first_offset is not None

    def _entry(self, producer_id: int) -> ProducerEntry:
        entry = self.entries.get(producer_id)
        if entry is None:
            known = self._producers.entries.get(producer_id)
            entry = known.copy() if known else ProducerEntry(producer_id)
            self.entries[producer_id] = entry
        return entry

    def _add_marker(
        self, entry: ProducerEntry, header: BatchHeader, base_offset: int, data: Buffer
    ) -> Refusal | None:
        marker = read_marker(data)
        if marker is None:
            return None
        if marker.coordinator_epoch < entry.coordinator_epoch and not self._trust:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED, (
                f"Invalid coordinator epoch for producer {entry.producer_id} at offset "
                f"{base_offset}: {marker.coordinator_epoch} (zombie), "
                f"{entry.coordinator_epoch} (current)"
            )
        if entry.txn_first_offset is not None:
            self.completed.append(
                CompletedTxn(
                    entry.producer_id, entry.txn_first_offset, base_offset, not marker.commit
                )
            )
        entry.enter_epoch(header.producer_epoch)
        entry.txn_first_offset = None
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp_ms = marker.timestamp_ms
        return None


def _is_next_sequence(entry: ProducerEntry, header: BatchHeader) -> bool:
    """Whether the first sequence of a batch is the next one; an unknown producer may begin
    anywhere."""
    if entry.epoch == -1:
        return True
    if header.producer_epoch != entry.epoch:
        return header.base_sequence == 0
    last = entry.last_sequence
    return header.base_sequence == last + 1 or (header.base_sequence == 0 and last == MAX_SEQUENCE)


def read_marker(data: Buffer) -> EndMarker | None:
    """The end of a transaction in a control batch, None for other control records."""
    try:
        record = next(iter_records(data), None)
    except CorruptBatch:
        return None
    if record is None or record.key is None or record.value is None or len(record.key) < 4:
        return None
    kind = _MARKER_KEY.unpack_from(record.key)[1]
    if kind not in (_ABORT, _COMMIT) or len(record.value) < _MARKER_VALUE.size:
        return None
    epoch = _MARKER_VALUE.unpack_from(record.value)[1]
    return EndMarker(kind == _COMMIT, epoch, record.timestamp_ms)
