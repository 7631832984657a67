"""Sends to compacted topics by key: what the reference checks of compaction compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from urteil.harness.verify.reference import (
    FinalPass,
    Partition,
    Row,
    SmallHistory,
    acknowledged_offset,
    places_of,
)


@dataclass(frozen=True)
class KeyedSend:
    """A send of a key, and where its record is."""

    partition: Partition
    row: Row

    @property
    def value_id(self) -> str:
        return str(self.row.value_id)

    @property
    def is_tombstone(self) -> bool:
        return bool(self.row.tombstone)

    @property
    def is_acknowledged(self) -> bool:
        return bool(self.row.outcome == "ok")

    @cached_property
    def logged_offsets(self) -> list[int]:
        """Its offsets in logs of final leaders, in order."""
        return [offset for _, _, offset in places_of(self._history.records_of[self.value_id])]

    @property
    def copies(self) -> int:
        """The records with its value on all disks."""
        return len(self._history.copies_of[self.value_id])

    @cached_property
    def offset(self) -> int | None:
        """The offset of its record; a producer without idempotence may have written the record
        again."""
        acknowledged = acknowledged_offset(self.row)
        if (
            self.logged_offsets
            and not self.row.idempotent
            and self.logged_offsets[-1] >= (acknowledged or 0)
        ):
            return self.logged_offsets[-1]
        if acknowledged is not None:
            return acknowledged
        if self.logged_offsets:
            return self.logged_offsets[0]
        return next((offset for _, _, offset in places_of(self._reads)), None)

    @property
    def is_unresolved(self) -> bool:
        """Whether the existence or the place of the record is unknown."""
        row = self.row
        if row.txn is not None and self._history.fate_of(row) != "committed":
            return True
        if row.outcome == "fail" and not row.ambiguous:
            return False
        if row.tombstone and not row.idempotent and (row.attempts or 2) > 1:
            return True
        known = acknowledged_offset(row) is not None or bool(self.logged_offsets)
        return not (row.outcome == "ok" and known)

    @property
    def is_sure(self) -> bool:
        """Whether it was certainly committed: acknowledged with a place or, outside transactions,
        read."""
        row = self.row
        known = acknowledged_offset(row) is not None or bool(self.logged_offsets)
        if row.outcome == "fail":
            return False
        if row.txn is not None:
            return row.outcome == "ok" and known and self._history.fate_of(row) == "committed"
        return bool(self._reads) or (row.outcome == "ok" and known)

    @property
    def covering_logs(self) -> int:
        """The number of logs that cover its offset."""
        offset = self.offset
        return sum(offset is not None and (row.log_start or 0) <= offset < (row.log_end or 0)
                   for row in self.partition.logs)  # fmt: skip

    @property
    def is_unserved(self) -> bool:
        """Whether a final pass over its only place in the final leader's log lacks it. A record of
        a committed transaction is also unserved if at no place all passes of readers of committed
        records delivered it."""
        if len(self.logged_offsets) != 1:
            return False
        offset, value = self.logged_offsets[0], self.value_id
        stored_in = self._history.partition_at[self._place]
        lacking = [sweep for sweep in stored_in.final_passes
                   if sweep.covers(offset) and not sweep.has_delivered(offset, value)]  # fmt: skip
        if any(sweep in stored_in.owing_passes(offset, value) for sweep in lacking):
            return True
        passes_by_place = self._history.committed_passes_over(self.row)
        return bool(
            (offset, value) in stored_in.due_records
            and stored_in.is_transactional(offset, value)
            and passes_by_place
            and not any(
                all(final_pass.has_delivered(place[2], value) for final_pass in passes)
                for place, passes in passes_by_place.items()
            )
        )

    @property
    def _history(self) -> SmallHistory:
        return self.partition.history

    @property
    def _reads(self) -> list[Row]:
        return self._history.reads_of[self.value_id]

    @property
    def _place(self) -> tuple[str, int]:
        record = self._history.records_of[self.value_id][0]
        return record.topic, record.partition


@dataclass
class Key:
    """A key of a partition with its sends; those of aborted transactions are not values."""

    partition: Partition
    sends: list[KeyedSend] = field(default_factory=list)

    @property
    def last_offset(self) -> int | None:
        known = [send.offset for send in self.sends if send.is_acknowledged]
        return max((offset for offset in known if offset is not None), default=None)

    @property
    def shown_offset(self) -> int | None:
        """The last offset that the final leader's log shows."""
        known = [send.offset for send in self.sends if send.logged_offsets]
        return max((offset for offset in known if offset is not None), default=None)

    @property
    def is_resolved(self) -> bool:
        """Whether the fate and the place of all its sends are known."""
        return not any(send.is_unresolved for send in self.sends)

    def latest(self, *, tombstone: bool) -> Iterator[KeyedSend]:
        """The last certainly committed record of the key. Nothing if an unresolved send may be
        later, unless the log shows neither of them."""
        known = [send for send in self.sends if send.is_sure]
        last = max((send.offset for send in known if send.offset is not None), default=None)
        if last is None or last < self.partition.start:
            return
        if not self.is_resolved and not self._has_lost_from(last):
            return
        for send in known:
            if send.offset == last and send.is_tombstone == tombstone:
                yield send

    def _has_lost_from(self, offset: int) -> bool:
        """Whether the log shows no record of the key at or behind an offset, though it must: no
        unresolved tombstone, no unclean election and no lost disk explains that."""
        part = self.partition.part
        is_explained = part.unclean_on or part.lost_floor is not None
        has_open_tombstone = any(send.is_unresolved and send.is_tombstone for send in self.sends)
        shown = -1 if self.shown_offset is None else self.shown_offset
        return not is_explained and not has_open_tombstone and shown < offset

    def shown_values(self) -> Iterator[tuple[str, KeyedSend]]:
        """The final value of the key with its place: in the log, and in each final pass."""
        for send in self.sends:
            if send.logged_offsets and send.offset == self.shown_offset and not send.is_tombstone:
                yield "in the log", send
        last = self.last_offset if self.is_resolved else None
        for final_pass in self.partition.final_passes:
            if last is not None and final_pass.covers(last):
                yield from (("in a pass", send) for send in self._shown_in(final_pass))

    def _shown_in(self, final_pass: FinalPass) -> Iterator[KeyedSend]:
        values = {send.value_id for send in self.sends}
        read_offsets = [read.offset for read in final_pass.reads if read.value_id in values]
        for send in self.sends:
            if read_offsets and send.offset == max(read_offsets) and not send.is_tombstone:
                yield send

    def outdated_values(self, *, tombstone: bool) -> Iterator[tuple[str, KeyedSend]]:
        """Values that the key shows and that are older than its last record, each with its
        place."""
        first_places: dict[str, tuple[str, KeyedSend]] = {}
        for latest in self.latest(tombstone=tombstone):
            for place, send in self.shown_values():
                if send.offset is not None and send.offset < (latest.offset or 0):
                    known = first_places.get(send.value_id, (place, send))
                    first_places[send.value_id] = min(place, known[0]), send
        yield from first_places.values()


def keys_of(history: SmallHistory) -> Iterator[Key]:
    """All keys of compacted topics."""
    for partition in history.partitions:
        if partition.is_compacted:
            yield from keys_in(partition)


def keys_in(partition: Partition) -> Iterator[Key]:
    """All keys of a partition."""
    history = partition.history
    by_key: dict[str, Key] = {}
    for row in partition.sends:
        is_aborted = history.fate_of(row) == "aborted" and not history.may_end_late(row)
        if row.key is not None and not is_aborted:
            key = by_key.setdefault(row.key, Key(partition))
            key.sends.append(KeyedSend(partition, row))
    yield from by_key.values()


def kept_records(partition: Partition) -> set[tuple[int, str]]:
    """Offset and value of each record in the final leader's log that no cleaner of any replica may
    have removed: the last value of its key."""
    last_values = {
        send.value_id
        for key in keys_in(partition)
        if key.is_resolved
        for send in key.sends
        if send.is_acknowledged and not send.is_tombstone and send.offset == key.last_offset
        if send.logged_offsets == [send.offset]
    }
    return {record for record in partition.due_records if record[1] in last_values}
