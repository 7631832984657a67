"""One cleaning of one log: the map pass, then a rewrite pass for each group of segments."""

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
    """Counters of a cleaning; sizes in bytes."""

    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    map_utilization: float = 0.0


class LogCleaning:
    """`work` runs in the background; when it is done, `proceed` is called on the event loop.

    It cleans the segments that the log had at its start; `is_valid` checks that they are unchanged.
    """

    def __init__(self, candidate: Candidate, map_bytes: int, now_ms: int) -> None:
        """Raises OSError if the log cannot be read."""
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
        self._tracker = TransactionTracker(self._aborted)
        self._groups: list[list[Source]] | None = None
        self._group: list[Source] | None = None
        self.work = self._mapping_work()

    @property
    def cleaned_to(self) -> int:
        """The log is clean before this offset after the cleaning."""
        return self._offsets.latest_offset + 1

    @property
    def is_valid(self) -> bool:
        """Whether the log was not truncated, moved, failed or set to another policy meanwhile."""
        log = self.log
        return (
            log.generation == self._generation
            and log.directory == self._directory
            and log.config.compacts
            and log.failure is None
        )

    @property
    def has_source_segments(self) -> bool:
        """Whether the segments still to be read belong to the log; retention may have deleted
        them."""
        remaining = [source.segment for source in self._group or self._sources]
        return self.log.segments.index_of(remaining) >= 0

    def _mapping_work(self) -> BackgroundWork:
        start = self._candidate.first_dirty
        dirty = [each for each in self._sources if each.end_offset > start]
        position: int | None = 0
        if dirty and dirty[0].base_offset < start:
            position = dirty[0].segment.position_of(start)
            if position is None:
                position = dirty[0].size
        self._offsets.begin(start)
        aborted = [txn for txn in self._aborted if txn.last_offset >= start]
        tracker = TransactionTracker(aborted)
        return BackgroundWork(
            map_offsets(self.log.storage, dirty, start, position or 0, self._offsets, tracker)
        )

    def proceed(self, now_ms: int) -> bool:
        """Swap in the rewritten group and begin the next one; False when all groups are done.

        Raises OSError; CleaningAborted when the log's segments changed meanwhile.
        """
        if self._groups is None:
            mapped = [each for each in self._sources if each.base_offset < self.cleaned_to]
            self._groups = group_sources(mapped, self.log.config)
            self.totals.map_utilization = self._offsets.utilization
        if self._group is not None:
            self._swap_in(self._group, now_ms)
            self._group = None
        if not self._groups:
            return False
        self._group = self._groups.pop(0)
        self.work = self._rewrite(self._group)
        return True

    def _swap_in(self, group: list[Source], now_ms: int) -> None:
        old = [source.segment for source in group]
        if not self.log.replace_segments(old, now_ms):
            raise CleaningAborted(f"{self.log!r}: its segments changed during the cleaning")
        self._count(group)

    def _count(self, group: list[Source]) -> None:
        totals, retention = self.totals, self._retention
        index = self.log.segments.floor_index(group[0].base_offset)
        totals.bytes_read += sum(source.size for source in group)
        totals.bytes_written += self.log.segments[index].size
        totals.records_read += retention.records_read
        totals.records_kept += retention.records_kept

    def _rewrite(self, group: list[Source]) -> BackgroundWork:
        log = self.log
        self._retention = RecordRetention(
            offsets=self._offsets,
            tracker=self._tracker,
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
        """Delete the files of an unfinished group. Raises OSError."""
        self.work.close()
        if self._group is not None:
            segment_swap.discard(self.log.storage, self._directory, self._group[0].base_offset)


class CleaningAborted(Exception):
    """The log changed during its cleaning, whose result is discarded."""


def _last_records(log: PartitionLog) -> LastRecords:
    return {
        producer_id: (entry.batches[-1].last_offset if entry.batches else None, entry.epoch)
        for producer_id, entry in log.producers.entries.items()
    }
