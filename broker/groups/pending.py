"""Positions that open transactions have committed: they count once the transaction does (KIP-447).

Source: `GroupMetadata.pendingTransactionalOffsetCommits` of Kafka 3.9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
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
        self._open: dict[int, dict[Place, Committed]] = {}
        self._appending: Counter[Place] = Counter()
        self._ended: dict[int, int] = {}

    def appending(self, places: Iterable[Place]) -> None:
        """From before the append on nobody may take the older position for the last one."""
        self._appending.update(places)

    def appended(self, places: Iterable[Place]) -> None:
        """The append is through, well or not."""
        self._appending -= Counter(places)

    def add(self, producer_id: int, where: Place, committed: Committed) -> None:
        """A record of an open transaction; nothing when the transaction's end was heard first."""
        if committed.log_offset > self._ended.get(producer_id, -1):
            self._open.setdefault(producer_id, {})[where] = committed

    def end(self, producer_id: int, marker_offset: int) -> dict[Place, Committed]:
        """The transaction ended: its positions, which are pending no more."""
        self._ended[producer_id] = marker_offset
        return self._open.pop(producer_id, {})

    def holds(self, where: Place) -> bool:
        return where in self._appending or any(where in known for known in self._open.values())

    def groups(self) -> set[str]:
        return {group for known in self._open.values() for group, _, _ in known}

    def concerns(self, group: str) -> bool:
        """Whether anything of a group is pending."""
        return group in self.groups() or any(group == one for one, _, _ in self._appending)
