"""Positions that do not count yet: those on their way into the log, and those of open transactions,
which count once the transaction does (KIP-447).

Source: `pendingOffsetCommits` and `pendingTransactionalOffsetCommits` of Kafka 3.9's GroupMetadata.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from urteil.broker.groups.records import OffsetCommitValue, Place


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed position, and where in the log its record stands."""

    value: OffsetCommitValue
    log_offset: int


class PendingOffsets:
    """Of one partition of the offsets topic: what is in the log, and what is on its way there."""

    def __init__(self) -> None:
        self._open: dict[int, dict[Place, Committed | None]] = {}  # None: deleted since
        self._appending: Counter[Place] = Counter()
        self._producers: Counter[int] = Counter()  # of transactions, with appends on their way
        self._ended: dict[int, int] = {}  # of those, where the last transaction ended
        self._deleted: dict[Place, int] = {}  # of what is on its way, where the tombstone is

    def appending(self, places: Sequence[Place], producer_id: int | None = None) -> None:
        """From before the append on nobody may take the older position for the last one."""
        self._appending.update(places)
        if producer_id is not None:
            self._producers[producer_id] += 1

    def appended(self, places: Sequence[Place], producer_id: int | None = None) -> None:
        """The append is through, well or not."""
        self._appending -= Counter(places)
        for where in places:
            if where not in self._appending:
                self._deleted.pop(where, None)
        if producer_id is not None:
            self._producers -= Counter([producer_id])
            if producer_id not in self._producers:
                self._ended.pop(producer_id, None)

    def is_on_its_way(self, where: Place) -> bool:
        """Whether a position there is being appended."""
        return where in self._appending

    def note_tombstone(self, where: Place, log_offset: int) -> None:
        """What was appended before it, and is heard of after it, is deleted."""
        if where in self._appending:
            self._deleted[where] = log_offset

    def is_deleted(self, where: Place, log_offset: int) -> bool:
        """Whether a later tombstone was heard of before this record."""
        return log_offset < self._deleted.get(where, -1)

    def add(self, producer_id: int, where: Place, committed: Committed) -> None:
        """A record of an open transaction; nothing when the transaction's end was heard first."""
        if committed.log_offset > self._ended.get(producer_id, -1):
            gone = self.is_deleted(where, committed.log_offset)
            self._open.setdefault(producer_id, {})[where] = None if gone else committed

    def end(self, producer_id: int, marker_offset: int) -> dict[Place, Committed]:
        """The transaction ended: its positions, which are pending no more."""
        if producer_id in self._producers:
            self._ended[producer_id] = marker_offset
        known = self._open.pop(producer_id, {})
        return {where: one for where, one in known.items() if one is not None}

    def forget(self, places: Iterable[Place]) -> None:
        """These are deleted: transactions that are open change nothing there any more."""
        for where in places:
            for known in self._open.values():
                if where in known:
                    known[where] = None

    def drop(self, group: str) -> None:
        """The group is deleted: one that has its name later is another."""
        for known in self._open.values():
            for where in [one for one in known if one[0] == group]:
                del known[where]

    def holds(self, where: Place) -> bool:
        is_open = any(known.get(where) is not None for known in self._open.values())
        return is_open or self.is_on_its_way(where)

    def groups(self) -> set[str]:
        return {group for known in self._open.values() for group, _, _ in known}

    def is_appending(self, group: str) -> bool:
        return any(group == one for one, _, _ in self._appending)

    def concerns(self, group: str) -> bool:
        """Whether anything of a group is pending, or was until it was deleted."""
        return group in self.groups() or self.is_appending(group)
