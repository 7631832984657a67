"""The content of one partition of `__consumer_offsets`: groups and their committed offsets."""

from __future__ import annotations

from collections.abc import Callable

from urteil.broker.groups.group import Group
from urteil.broker.groups.pending_offsets import Committed, PendingOffsets
from urteil.broker.groups.records import (
    GroupMetadataValue,
    Place,
    decode_group,
    decode_group_key,
    decode_offset,
    decode_place,
)
from urteil.broker.groups.snapshot import restore


class Shard:
    """Groups and offsets of one partition while this broker leads it.

    Only `replay` and `transaction_ended` change the offsets; `pending` has those being appended and
    those of open transactions.
    """

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.is_loaded = False
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, dict[tuple[str, int], Committed]] = {}
        self.pending = PendingOffsets()
        self._stored_groups: dict[str, GroupMetadataValue] = {}
        self._ended_meanwhile: list[tuple[int, int, bool]] = []

    def replay(
        self,
        key: bytes | None,
        value: bytes | None,
        log_offset: int,
        producer_id: int | None = None,
    ) -> None:
        """Apply one record of the log; `producer_id` if it is part of a transaction. Keys of
        unknown versions are ignored. Raises WireError."""
        if key is None:
            return
        place = decode_place(key)
        if place is None:
            if not self.is_loaded:  # a loaded group is newer than its record
                self._replay_group(decode_group_key(key), value)
        elif producer_id is not None and value is not None:
            committed = Committed(decode_offset(value), log_offset)
            self.pending.add(producer_id, place, committed)
        else:
            self._replay_offset(place, value, log_offset)

    def marker_written(self, producer_id: int, marker_offset: int, *, commit: bool) -> None:
        """Apply the end of a transaction, after loading if the log is still being read."""
        if self.is_loaded:
            self.transaction_ended(producer_id, marker_offset, commit=commit)
        else:
            self._ended_meanwhile.append((producer_id, marker_offset, commit))

    def transaction_ended(self, producer_id: int, marker_offset: int, *, commit: bool) -> None:
        """Commit or drop the pending offsets of a producer whose marker is in the log."""
        for (group, topic, partition), committed in self.pending.end(
            producer_id, marker_offset
        ).items():
            positions = self.offsets.setdefault(group, {})
            known = positions.get((topic, partition))
            if commit and (known is None or known.log_offset < committed.log_offset):
                positions[topic, partition] = committed

    def _replay_offset(self, place: Place, value: bytes | None, log_offset: int) -> None:
        group, topic, partition = place
        positions = self.offsets.setdefault(group, {})
        known = positions.get((topic, partition))
        is_outdated = known is not None and known.log_offset > log_offset
        if is_outdated or self.pending.is_deleted(place, log_offset):
            return  # of two commits in flight the later record counts
        if value is None:
            positions.pop((topic, partition), None)
            self.pending.note_tombstone(place, log_offset)
        else:
            positions[topic, partition] = Committed(decode_offset(value), log_offset)

    def _replay_group(self, group: str | None, value: bytes | None) -> None:
        if group is not None and value is None:
            self._stored_groups.pop(group, None)
        elif group is not None and value is not None:
            self._stored_groups[group] = decode_group(value)

    def finish_loading(self, new_group: Callable[[str], Group], now_ms: float) -> None:
        """Create the groups after all records were replayed."""
        for producer_id, marker_offset, commit in self._ended_meanwhile:
            self.transaction_ended(producer_id, marker_offset, commit=commit)
        for group_id, value in self._stored_groups.items():
            self.groups[group_id] = new_group(group_id)
            restore(self.groups[group_id], value, now_ms)
        with_positions = [group_id for group_id, positions in self.offsets.items() if positions]
        for group_id in [*with_positions, *sorted(self.pending.groups())]:
            if group_id not in self.groups:
                self.groups[group_id] = new_group(group_id)
        self._stored_groups.clear()
        self.is_loaded = True
