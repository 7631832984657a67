"""The cleaning of one log, from the map of its keys to the last segment put in place."""

from __future__ import annotations

from dataclasses import dataclass

from urteil.broker.log.cleaner import segment_swap
from urteil.broker.log.cleaner.background_work import BackgroundWork
from urteil.broker.log.cleaner.candidates import Candidate
from urteil.broker.log.cleaner.map_pass import map_offsets
from urteil.broker.log.cleaner.offset_map import OffsetMap
from urteil.broker.log.cleaner.record_retention import LastRecords, RecordRetention
from urteil.broker.log.cleaner.rewrite_pass import rewrite
from urteil.broker.log.cleaner.segment_groups import Source, describe_source, group_sources
from urteil.broker.log.cleaner.transaction_tracker import TransactionTracker
from urteil.broker.log.partition_log import PartitionLog


@dataclass(slots=True)
class Totals:
    """What a cleaning read and wrote so far; sizes in bytes."""

    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    map_utilization: float = 0.0


class LogCleaning:
    """Its `work` runs beside the loop; `proceed` is called on the loop when that is done.

    It cleans what the log held when it began. `is_valid` tells whether that still stands.
    """

    def __init__(self, candidate: Candidate, map_bytes: int, now_ms: int) -> None:
        """Raises OSError where the log cannot be read."""
        self.log = log = candidate.log
        self.began_ms = now_ms
        self.totals = Totals()
        self._candidate = candidate
        self._generation = log.generation
        self._directory = log.directory
        self._offsets = OffsetMap(map_bytes)
        sources = [
            describe_source(each) for each in log.segments if each.base_offset < candidate.end
        ]
        self._sources = sources
        self._aborted = log.aborted_transactions(log.segments.first_offset, candidate.end)
        self._walk = TransactionTracker(self._aborted)
        self._groups: list[list[Source]] | None = None
        self._group: list[Source] | None = None
        self.work = self._mapping()

    @property
    def cleaned_to(self) -> int:
        """The log is clean before this offset once all is done."""
        return self._offsets.latest_offset + 1

    @property
    def is_valid(self) -> bool:
        """Whether nothing happened to the log that this cleaning does not know of."""
        log = self.log
        return (
            log.generation == self._generation
            and log.directory == self._directory
            and log.config.compacts
            and log.failure is None
        )

    @property
    def has_its_segments(self) -> bool:
        """Whether what is still to be read is the log's, not let go by retention."""
        rest = [source.segment for source in self._group or self._sources]
        return self.log.segments.index_of(rest) >= 0

    def _mapping(self) -> BackgroundWork:
        start = self._candidate.first_dirty
        dirty = [each for each in self._sources if each.end_offset > start]
        position: int | None = 0
        if dirty and dirty[0].base_offset < start:
            position = dirty[0].segment.position_of(start)
            if position is None:
                position = dirty[0].size
        self._offsets.begin(start)
        aborted = [txn for txn in self._aborted if txn.last_offset >= start]
        walk = TransactionTracker(aborted)
        return BackgroundWork(
            map_offsets(self.log.storage, dirty, start, position or 0, self._offsets, walk)
        )

    def proceed(self, now_ms: int) -> bool:
        """Put in place what was written and begin the next part; False when all is done.

        Raises OSError; CleaningAborted when the log's segments changed meanwhile.
        """
        if self._groups is None:
            mapped = [each for each in self._sources if each.base_offset < self.cleaned_to]
            self._groups = group_sources(mapped, self.log.config)
            self.totals.map_utilization = self._offsets.utilization
        if self._group is not None:
            self._put_in_place(self._group, now_ms)
            self._group = None
        if not self._groups:
            return False
        self._group = self._groups.pop(0)
        self.work = self._rewriting(self._group)
        return True

    def _put_in_place(self, group: list[Source], now_ms: int) -> None:
        old = [source.segment for source in group]
        if not self.log.replace_segments(old, now_ms):
            raise CleaningAborted(f"{self.log!r}: its segments are others by now")
        self._count(group)

    def _count(self, group: list[Source]) -> None:
        totals, retention = self.totals, self._retention
        index = self.log.segments.floor_index(group[0].base_offset)
        totals.bytes_read += sum(source.size for source in group)
        totals.bytes_written += self.log.segments[index].size
        totals.records_read += retention.records_read
        totals.records_kept += retention.records_kept

    def _rewriting(self, group: list[Source]) -> BackgroundWork:
        log = self.log
        self._retention = RecordRetention(
            offsets=self._offsets,
            walk=self._walk,
            last_records=_last_records(log),
            round_end=self._candidate.end,
            now_ms=self.began_ms,
            delete_retention_ms=log.config.delete_retention_ms,
            cleaned_ms=self._cleaned_ms(),
        )
        return BackgroundWork(
            rewrite(
                log.storage,
                self._directory,
                group,
                self._retention,
                log.config.index_interval_bytes,
            )
        )

    def _cleaned_ms(self) -> int | None:
        start = self._candidate.first_dirty
        cleaned = [source.modified_ms for source in self._sources if source.base_offset < start]
        return cleaned[-1] if cleaned else None

    def discard(self) -> None:
        """Remove what was not put in place. Raises OSError."""
        self.work.close()
        if self._group is not None:
            segment_swap.discard(self.log.storage, self._directory, self._group[0].base_offset)


class CleaningAborted(Exception):
    """The log changed under the cleaning, which is of no use any more."""


def _last_records(log: PartitionLog) -> LastRecords:
    return {
        producer_id: (entry.batches[-1].last_offset if entry.batches else None, entry.epoch)
        for producer_id, entry in log.producers.entries.items()
    }
