"""Offsets that are not visible yet: those being appended, and those of open transactions (KIP-447).

Source: `pendingOffsetCommits` and `pendingTransactionalOffsetCommits` of Kafka 3.9's GroupMetadata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from urteil.broker.groups.records import OffsetCommitValue, Place


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset, and the log offset of its record."""

    value: OffsetCommitValue
    log_offset: int


class PendingOffsets:
    """The pending offsets of one partition of the offsets topic."""

    def __init__(self) -> None:
        self._open: dict[int, dict[Place, Committed | None]] = {}  # None: deleted since
        self._appending: Counter[Place] = Counter()
        self._producers: Counter[int] = Counter()  # of transactions, with appends on their way
        self._ended: dict[int, int] = {}  # of those, where the last transaction ended
        self._deleted: dict[Place, int] = {}  # of what is on its way, where the tombstone is

    def begin_append(self, places: Sequence[Place], producer_id: int | None = None) -> None:
        """Mark offsets as being appended: from now on the older ones are not the last."""
        self._appending.update(places)
        if producer_id is not None:
            self._producers[producer_id] += 1

    def end_append(self, places: Sequence[Place], producer_id: int | None = None) -> None:
        """Unmark offsets after the append, whether it failed or not."""
        self._appending -= Counter(places)
        for where in places:
            if where not in self._appending:
                self._deleted.pop(where, None)
        if producer_id is not None:
            self._producers -= Counter([producer_id])
            if producer_id not in self._producers:
                self._ended.pop(producer_id, None)

    def is_being_appended(self, where: Place) -> bool:
        """Whether an offset of this partition is being appended."""
        return where in self._appending

    def note_tombstone(self, where: Place, log_offset: int) -> None:
        """Note a tombstone, so that an earlier record that completes later counts as deleted."""
        if where in self._appending:
            self._deleted[where] = log_offset

    def is_deleted(self, where: Place, log_offset: int) -> bool:
        """Whether a later tombstone was noted before this record."""
        return log_offset < self._deleted.get(where, -1)

    def add(self, producer_id: int, where: Place, committed: Committed) -> None:
        """Add a record of an open transaction; ignored if the transaction ended before."""
        if committed.log_offset > self._ended.get(producer_id, -1):
            gone = self.is_deleted(where, committed.log_offset)
            self._open.setdefault(producer_id, {})[where] = None if gone else committed

    def end(self, producer_id: int, marker_offset: int) -> dict[Place, Committed]:
        """End a transaction; returns its offsets, which are no longer pending."""
        if producer_id in self._producers:
            self._ended[producer_id] = marker_offset
        known = self._open.pop(producer_id, {})
        return {where: position for where, position in known.items() if position is not None}

    def mark_deleted(self, places: Iterable[Place]) -> None:
        """Mark offsets as deleted: open transactions do not change them any more."""
        for where in places:
            for known in self._open.values():
                if where in known:
                    known[where] = None

    def drop_group(self, group: str) -> None:
        """Drop the offsets of a deleted group."""
        for known in self._open.values():
            for where in [place for place in known if place[0] == group]:
                del known[where]

    def is_pending(self, where: Place) -> bool:
        is_open = any(known.get(where) is not None for known in self._open.values())
        return is_open or self.is_being_appended(where)

    def groups(self) -> set[str]:
        return {group for known in self._open.values() for group, _, _ in known}

    def is_appending(self, group: str) -> bool:
        return any(group == other_group for other_group, _, _ in self._appending)

    def concerns(self, group: str) -> bool:
        """Whether an offset of the group is pending, or was pending until its deletion."""
        return group in self.groups() or self.is_appending(group)
