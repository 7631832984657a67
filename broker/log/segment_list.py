"""The segments of one log in the order of their base offsets; the last one is active."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import is_
from pathlib import Path

from urteil.broker.log.segment import MAX_RELATIVE_OFFSET, LogSegment
from urteil.broker.log.storage import Storage
from urteil.broker.log.txn_index import AbortedTxn


class SegmentList:
    """The segments of one log. Never empty once loaded; appends go to `active`."""

    __slots__ = ("_bases", "_list", "_storage", "directory", "misindexed")

    def __init__(self, storage: Storage, directory: Path) -> None:
        self._storage = storage
        self.directory = directory
        self._bases: list[int] = []
        self._list: list[LogSegment] = []
        self.misindexed: list[LogSegment] = []  # segments whose indexes do not match their batches

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._list)

    def __getitem__(self, index: int) -> LogSegment:
        return self._list[index]

    @property
    def active_segment(self) -> LogSegment:
        return self._list[-1]

    @property
    def first_offset(self) -> int:
        return self._bases[0]

    @property
    def size(self) -> int:
        """Bytes in all `.log` files."""
        return sum(segment.size for segment in self._list)

    @property
    def base_offsets(self) -> list[int]:
        return list(self._bases)

    def aborted_transactions(self, from_offset: int, to_offset: int) -> list[AbortedTxn]:
        """Aborted transactions that overlap [from_offset, to_offset)."""
        transactions: list[AbortedTxn] = []
        for index in range(max(self.floor_index(from_offset), 0), len(self)):
            for txn in self[index].txn_index.entries:
                if txn.last_offset >= from_offset and txn.first_offset < to_offset:
                    transactions.append(txn)
                if txn.last_stable_offset >= to_offset:
                    return transactions
        return transactions

    def open(
        self, base_offset: int, now_ms: int, *, create: bool, preallocated_bytes: int = 0
    ) -> LogSegment:
        """Open or create the segment that follows all others."""
        segment = self._make(base_offset, now_ms, create=create)
        if self._list:
            self._list[-1].bound = base_offset
        self._bases.append(base_offset)
        self._list.append(segment)
        if create:
            segment.preallocate(preallocated_bytes)
            segment.activate()
        return segment

    def _make(self, base_offset: int, now_ms: int, *, create: bool) -> LogSegment:
        return LogSegment(
            self._storage,
            self.directory,
            base_offset,
            now_ms,
            create=create,
            misindexed=self.misindexed,
        )

    def relocate(self, directory: Path) -> None:
        """Adopt the new folder of the log."""
        self.directory = directory
        for segment in self._list:
            segment.relocate(directory)

    def floor_index(self, offset: int) -> int:
        """The index of the last segment that begins at or before `offset`, -1 without one."""
        return bisect_right(self._bases, offset) - 1

    def end_of(self, index: int, log_end_offset: int) -> int:
        """The offset where the segment at `index` ends and the next one begins."""
        return self._bases[index + 1] if index + 1 < len(self._bases) else log_end_offset

    def remove_after(self, index: int) -> list[int]:
        """Remove the segments behind `index` with their files, newest first, so that a crash leaves
        no hole. Returns their base offsets."""
        removed = []
        for segment in self.detach_after(index):
            segment.remove()
            removed.append(segment.base_offset)
        return removed

    def detach_after(self, index: int) -> Iterator[LogSegment]:
        """Detach the segments behind `index`, newest first; the caller owns their files."""
        while len(self._list) > index + 1:
            self._bases.pop()
            segment = self._list.pop()
            if self._list:
                self._list[-1].bound = self._bases[-1] + MAX_RELATIVE_OFFSET + 1
            yield segment

    def insert_after(self, index: int, base_offset: int, now_ms: int) -> None:
        """Open an existing file as the segment behind the one at `index`."""
        segment = self._make(base_offset, now_ms, create=False)
        if index + 1 < len(self._list):
            segment.bound = self._bases[index + 1]
        self._list[index].bound = base_offset
        self._list.insert(index + 1, segment)
        self._bases.insert(index + 1, base_offset)

    def remove_empty(self, index: int) -> None:
        """Remove a segment without batches and its files."""
        del self._bases[index]
        self._list.pop(index).remove()

    def index_of(self, run: Sequence[LogSegment]) -> int:
        """The index of `run`, -1 unless these segment objects are consecutive here."""
        index = self.floor_index(run[0].base_offset)
        candidates = self._list[max(index, 0) : index + len(run)]
        return index if all(map(is_, candidates, run)) and len(candidates) == len(run) else -1

    def replace(self, index: int, count: int, now_ms: int) -> None:
        """Replace `count` segments from `index` on by one, opened from its files."""
        base_offset = self._bases[index]
        segment = self._make(base_offset, now_ms, create=False)
        segment.bound = self._list[index + count - 1].bound
        self._list[index : index + count] = [segment]
        self._bases[index : index + count] = [base_offset]

    def detach_first(self, count: int) -> list[LogSegment]:
        """Detach the oldest segments; the caller owns their files."""
        segments = self._list[:count]
        del self._list[:count], self._bases[:count]
        return segments
