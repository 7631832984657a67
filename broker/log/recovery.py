"""Bringing a log up from its folder, whatever a crash left there (`LogLoader`, `LogSegment`).

After an unclean stop every segment from the recovery point on is read through; the log ends
before the first batch that is damaged, and what follows from the batches (indexes, producers,
epochs) is built anew.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from urteil.broker.log.config import LogConfig
from urteil.broker.log.epochs import EpochCache
from urteil.broker.log.producers import Producers
from urteil.broker.log.replay import learn, rebuild_producers
from urteil.broker.log.scan import Batch, read_batches
from urteil.broker.log.segment import (
    DELETED,
    INDEX,
    LOG,
    MAX_RELATIVE_OFFSET,
    TIME_INDEX,
    TXN_INDEX,
    LogSegment,
)
from urteil.broker.log.segments import Segments
from urteil.broker.log.snapshots import Snapshots
from urteil.broker.log.storage import Storage
from urteil.broker.wire.batches import crc_ok

_log = logging.getLogger("urteil.broker.log")

_LEFTOVERS = (DELETED, ".cleaned", ".tmp")


@dataclass(slots=True, kw_only=True)
class Loaded:
    """The parts of a log, agreeing with each other."""

    segments: Segments
    epochs: EpochCache
    producers: Producers
    snapshots: Snapshots
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    cut_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What the checkpoints of the log directory say of a log."""

    recovery_point: int = 0
    log_start_offset: int = 0
    clean: bool = False


def load(
    storage: Storage, directory: Path, config: LogConfig, remembered: Remembered, now_ms: int
) -> Loaded:
    """Open a log, recovering it as needed. Raises OSError when the storage fails."""
    _remove_leftovers(storage, directory)
    segments = _open_segments(storage, directory, now_ms)
    epochs = EpochCache(storage, directory)
    snapshots = Snapshots(storage, directory)
    producers = Producers()
    loaded = Loaded(
        segments=segments,
        epochs=epochs,
        producers=producers,
        snapshots=snapshots,
        log_start_offset=remembered.log_start_offset,
        log_end_offset=0,
        recovery_point=remembered.recovery_point,
    )
    _Recovery(loaded, config, remembered, now_ms).run()
    return loaded


def _remove_leftovers(storage: Storage, directory: Path) -> None:
    """Remove files that were to be deleted or were never finished, and orphaned indexes."""
    names = storage.names(directory)
    logs = {name.removesuffix(LOG) for name in names if name.endswith(LOG)}
    for name in names:
        stem, dot, kind = name.partition(".")
        orphan = dot + kind in (INDEX, TIME_INDEX, TXN_INDEX) and stem not in logs
        if orphan or name.endswith(_LEFTOVERS):
            storage.remove(directory / name)


def _open_segments(storage: Storage, directory: Path, now_ms: int) -> Segments:
    segments = Segments(storage, directory)
    stems = (name.removesuffix(LOG) for name in storage.names(directory) if name.endswith(LOG))
    for base_offset in sorted(int(stem) for stem in stems if stem.isdigit()):
        segments.open(base_offset, now_ms, create=False)
    return segments


class _Recovery:
    """One pass over the segments of a log that was just opened."""

    def __init__(
        self, loaded: Loaded, config: LogConfig, remembered: Remembered, now_ms: int
    ) -> None:
        self.loaded = loaded
        self.config = config
        self.remembered = remembered
        self.now_ms = now_ms
        self.new_epochs: list[tuple[int, int]] = []

    def run(self) -> None:
        loaded = self.loaded
        if not self.remembered.clean:
            self._drop_unsafe_snapshots()
        self._scan_segments()
        self._settle_offsets()
        self._settle_epochs()
        loaded.snapshots.remove_strays(loaded.segments.base_offsets)
        self._rebuild_producers(loaded.log_end_offset)

    def _rebuild_producers(self, end_offset: int) -> None:
        loaded = self.loaded
        rebuild_producers(
            loaded.producers,
            loaded.snapshots,
            loaded.segments,
            log_start_offset=loaded.log_start_offset,
            end_offset=end_offset,
        )

    def _first_unflushed(self) -> int:
        """The index of the first segment that may hold what never reached the device."""
        if self.remembered.clean:
            return len(self.loaded.segments)
        return max(self.loaded.segments.floor(self.remembered.recovery_point), 0)

    def _drop_unsafe_snapshots(self) -> None:
        first = self._first_unflushed()
        if first < len(self.loaded.segments):
            base_offset = self.loaded.segments[first].base_offset
            for offset in [taken for taken in self.loaded.snapshots.offsets if taken > base_offset]:
                self.loaded.snapshots.remove(offset)

    def _scan_segments(self) -> None:
        segments, first = self.loaded.segments, self._first_unflushed()
        no_epochs = not self.loaded.epochs.entries
        for index in range(len(segments)):
            if index >= len(segments):
                break
            suspect = index >= first or no_epochs or not self._indexes_fit(segments[index])
            if suspect and self._recover(index):
                removed = segments.remove_after(index)
                if removed:
                    _log.warning("%s: dropped segments %s after it", segments.directory, removed)

    def _indexes_fit(self, segment: LogSegment) -> bool:
        storage_has = all(index.exists() for index in (segment.offset_index, segment.time_index))
        return (
            storage_has
            and segment.offset_index.is_sane(segment.size)
            and segment.time_index.is_sane()
            and segment.txn_index.is_sane()
        )

    def _recover(self, index: int) -> int:
        """Read a segment through, rebuild what follows from it; returns the bytes cut off."""
        loaded, segment = self.loaded, self.loaded.segments[index]
        self._rebuild_producers(segment.base_offset)
        if segment.base_offset > loaded.log_start_offset:
            entries = loaded.producers.entries.values()
            loaded.snapshots.take(segment.base_offset, entries, sync=False)
        segment.clear_indexes()
        position, expected = 0, segment.base_offset
        bound = loaded.segments.end_of(index, segment.base_offset + MAX_RELATIVE_OFFSET + 1)
        for batch in read_batches(segment.file, 0, segment.size):
            header = batch.header
            fits = expected <= header.base_offset and header.last_offset < bound
            if not fits or not crc_ok(batch.data):
                break
            self._take(segment, batch)
            position += header.size
            expected = header.last_offset + 1
        loaded.producers.end_offset = expected
        return self._cut(segment, position, expected)

    def _cut(self, segment: LogSegment, position: int, offset: int) -> int:
        cut = segment.size - position
        if cut:
            name = segment.path(LOG)
            _log.warning("%s: cut %d bytes at %d, offset %d", name, cut, position, offset)
            segment.cut(position)
            self.loaded.cut_bytes += cut
        if segment is not self.loaded.segments.active:
            segment.seal()
        return cut

    def _take(self, segment: LogSegment, batch: Batch) -> None:
        header = batch.header
        segment.note(
            header.last_offset,
            header.max_timestamp,
            header.size,
            batch.position,
            self.config.index_interval_bytes,
        )
        for aborted in learn(self.loaded.producers, batch):
            segment.txn_index.append(aborted)
        epoch = header.partition_leader_epoch
        newest = self.new_epochs[-1][0] if self.new_epochs else self.loaded.epochs.latest
        if epoch > newest:
            self.new_epochs.append((epoch, header.base_offset))

    def _settle_offsets(self) -> None:
        loaded, segments = self.loaded, self.loaded.segments
        start = max(self.remembered.log_start_offset, 0)
        if len(segments):
            start = max(start, segments.first_offset)
            loaded.log_end_offset = segments.active.activate()
        if len(segments) and loaded.log_end_offset < start:
            _log.warning("%s: log ends before its start %d: emptied", segments.directory, start)
            segments.remove_after(-1)
        if not len(segments):
            segments.open(start, self.now_ms, create=True)
            loaded.log_end_offset = start
        loaded.log_start_offset = start
        end = loaded.log_end_offset
        untouched = self.remembered.clean and not loaded.cut_bytes
        loaded.recovery_point = end if untouched else min(self.remembered.recovery_point, end)

    def _settle_epochs(self) -> None:
        epochs = self.loaded.epochs
        epochs.learn(self.new_epochs)
        epochs.truncate_from_end(self.loaded.log_end_offset)
        epochs.truncate_from_start(self.loaded.log_start_offset)
