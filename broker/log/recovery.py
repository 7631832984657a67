"""Recovery of a log from its folder at the start of a broker (`LogLoader`, `LogSegment`).

After an unclean stop every segment from the recovery point on is scanned. The log ends before its
first damaged or missing batch: a power cut may have lost any bytes that were not flushed. Below the
recovery point, and after a clean stop, damage ends only its own segment; later segments stay.
Indexes, producer state and leader epochs are rebuilt from the batches. Removed bytes are moved to
kept files (`kept_files`): no complete batch is deleted.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice
from math import inf
from pathlib import Path

from urteil.broker.log.batch_scan import Batch, read_batches
from urteil.broker.log.checkpoints import LOG_STARTS
from urteil.broker.log.consistency_checks import (
    is_consistent,
    is_epoch_cache_consistent,
    read_epochs_from_batches,
)
from urteil.broker.log.epoch_cache import EpochCache
from urteil.broker.log.file_names import LOG, file_name, list_base_offsets
from urteil.broker.log.kept_files import KeptFiles, copy_end, iter_chunks
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.producer_replay import apply_batch, rebuild_producers
from urteil.broker.log.producer_snapshots import ProducerSnapshots
from urteil.broker.log.producer_states import ProducerStates
from urteil.broker.log.segment import MAX_RELATIVE_OFFSET, DamagedSegment, LogSegment
from urteil.broker.log.segment_list import SegmentList
from urteil.broker.log.storage import Storage
from urteil.broker.log.unfinished_files import settle_unfinished_files
from urteil.broker.wire.batch_header import NO_TIMESTAMP
from urteil.broker.wire.batches import NEWEST_MAGIC, first_offset, is_crc_valid

_log = logging.getLogger("urteil.broker.log")


@dataclass(slots=True, kw_only=True)
class RecoveredLog:
    """The parts of a recovered log, consistent with each other."""

    segments: SegmentList
    epochs: EpochCache
    producers: ProducerStates
    snapshots: ProducerSnapshots
    kept: KeptFiles
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    cut_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointedState:
    """The entries of a log in the checkpoints of its directory, and whether the stop was clean."""

    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int | None = None
    cleaned_to: int | None = None
    clean: bool = False


def load(
    storage: Storage,
    directory: Path,
    config: LogConfig,
    checkpointed: CheckpointedState,
    now_ms: int,
) -> RecoveredLog:
    """Open a log and recover it if needed. Raises OSError when the storage fails."""
    settle_unfinished_files(storage, directory)
    segments = _open_segments(storage, directory, now_ms)
    epochs = EpochCache(storage, directory)
    snapshots = ProducerSnapshots(storage, directory)
    producers = ProducerStates()
    loaded = RecoveredLog(
        segments=segments,
        epochs=epochs,
        producers=producers,
        snapshots=snapshots,
        kept=KeptFiles(storage, directory, now_ms),
        log_start_offset=checkpointed.log_start_offset,
        log_end_offset=0,
        recovery_point=checkpointed.recovery_point,
    )
    _Recovery(storage, loaded, config, checkpointed, now_ms).run()
    return loaded


def _open_segments(storage: Storage, directory: Path, now_ms: int) -> SegmentList:
    segments = SegmentList(storage, directory)
    for base_offset in list_base_offsets(storage, directory, LOG):
        segments.open(base_offset, now_ms, create=False)
    return segments


def _with_next(batches: Iterator[Batch]) -> Iterator[tuple[Batch, Batch | None]]:
    here = next(batches, None)
    while here is not None:
        following = next(batches, None)
        yield here, following
        here = following


class _Stop(Enum):
    """The reason why the scan of a segment ended."""

    END = auto()  # the end of the file, or a batch that cannot be read
    OVERLAP = auto()  # a batch that belongs to the next segment
    TOO_FAR = auto()  # a batch whose offset no relative offset of this segment reaches


class _Recovery:
    """One pass over the segments of a log that was just opened."""

    def __init__(
        self,
        storage: Storage,
        loaded: RecoveredLog,
        config: LogConfig,
        checkpointed: CheckpointedState,
        now_ms: int,
    ) -> None:
        self.storage = storage
        self.loaded = loaded
        self.config = config
        self.checkpointed = checkpointed
        self.now_ms = now_ms
        self.new_epochs: list[tuple[int, int]] = []
        self.newest_epoch = loaded.epochs.latest
        self.emptied: set[int] = set()  # base offsets of segments that a split emptied

    def run(self) -> None:
        loaded = self.loaded
        if not self.checkpointed.clean:
            self._remove_unflushed_snapshots()
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
        """The index of the first segment that may have bytes that were not flushed."""
        if self.checkpointed.clean:
            return len(self.loaded.segments)
        return max(self.loaded.segments.floor_index(self.checkpointed.recovery_point), 0)

    def _remove_unflushed_snapshots(self) -> None:
        first = self._first_unflushed()
        if first < len(self.loaded.segments):
            base_offset = self.loaded.segments[first].base_offset
            for offset in [each for each in self.loaded.snapshots.offsets if each > base_offset]:
                self.loaded.snapshots.remove(offset)

    def _scan_segments(self) -> None:
        segments, first = self.loaded.segments, self._first_unflushed()
        unflushed_from = segments[first].base_offset if first < len(segments) else inf
        no_epochs = not self.loaded.epochs.entries
        index = 0
        while index < len(segments):
            unflushed = segments[index].base_offset >= unflushed_from
            if unflushed or (
                (no_epochs or not self._is_sound(index)) and not self._is_readable_by_index(index)
            ):
                lost = self._recover(index, unflushed=unflushed)
                if lost and unflushed and self._has_new_neighbours(index):
                    self._keep_segments_after(index)
            if segments[index].size or segments[index].base_offset not in self.emptied:
                index += 1
            else:
                segments.remove_empty(index)
        self._drop_empty_end(first)

    def _keep_segments_after(self, index: int) -> None:
        """Remove the segments behind `index` from the log; their bytes move to kept files."""
        segments = self.loaded.segments
        for segment in segments.detach_after(index):
            target = self.loaded.kept.keep_segment(segment.file, segment.base_offset)
            if target is not None:
                _log.error("%s: removed from the log, kept as %s", segment.path(LOG), target.name)
            segment.remove()

    def _drop_empty_end(self, first: int) -> None:
        """Remove empty segments at the end that follow a hole.

        A compacted log may have holes, but not before an empty last segment: a cleaning keeps its
        last batch. Such a hole is the unflushed end of a segment that a power cut lost. If the log
        ended behind it, no follower would fetch the missing records.
        """
        segments = self.loaded.segments
        while len(segments) > max(first, 0) + 1 and segments.active_segment.size == 0:
            end, base_offset = (
                segments[len(segments) - 2].end_offset(),
                segments.active_segment.base_offset,
            )
            if not end < base_offset <= end + MAX_RELATIVE_OFFSET:  # else a wide gap, see `roll`
                return
            segments.remove_after(len(segments) - 2)
            _log.error("%s: dropped %d behind offset %d", segments.directory, base_offset, end)

    def _is_sound(self, index: int) -> bool:
        segment = self.loaded.segments[index]
        sound = is_consistent(self.loaded.segments, index)
        if not sound:
            _log.warning("%s: does not match its indexes, recovering it", segment.path(LOG))
        return sound

    def _is_readable_by_index(self, index: int) -> bool:
        """Whether a flushed segment is damaged in the middle and its offset index still reaches the
        batches after the damage. Both then stay unchanged: the index is the only way to them."""
        segment = self.loaded.segments[index]
        position = 0
        for batch in read_batches(segment.file, 0, segment.size):
            position = batch.position + batch.header.size
        if position == segment.size or not segment.offset_index.exists():
            return False
        if not (segment.offset_index.is_sane(segment.size) and segment.offset_index.count):
            return False
        try:
            if segment.end_from_index() > segment.bound or segment.offset_index.last[1] < position:
                return False
        except DamagedSegment:
            return False
        if not (segment.time_index.exists() and segment.time_index.is_sane()):
            segment.time_index.replace(b"")
        if not segment.txn_index.is_sane():
            segment.txn_index.clear()
        _log.error("%s: damaged at byte %d, not changed", segment.path(LOG), position)
        return True

    def _recover(self, index: int, *, unflushed: bool) -> bool:
        """Scan a segment and rebuild its indexes; return whether records at its end are lost.

        In a flushed segment a batch with a wrong checksum stays: its readers report it, and the
        batches after it are intact.
        """
        loaded, segment = self.loaded, self.loaded.segments[index]
        promised_end = self._indexed_end(index)
        self._rebuild_producers(segment.base_offset)
        if segment.base_offset > loaded.log_start_offset:
            entries = loaded.producers.entries.values()
            loaded.snapshots.write(segment.base_offset, entries, sync=False)
        segment.clear_indexes()
        next_base = self._next_base(index)
        position, expected, stop = 0, segment.base_offset, _Stop.END
        for batch, following in _with_next(read_batches(segment.file, 0, segment.size)):
            header, intact = batch.header, is_crc_valid(batch.data)
            # no checksum covers the offset: if the next batch's is lower, this one is wrong
            leaps = following is not None and (
                expected <= following.header.base_offset <= header.base_offset
            )
            if leaps or expected > header.base_offset or (unflushed and not intact):
                break
            if header.last_offset >= next_base:
                stop = _Stop.OVERLAP
                break
            if header.last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
                stop = _Stop.TOO_FAR
                self._split(index, position, first_offset(header, batch.data))
                break
            self._index_batch(segment, batch, intact=intact)
            position += header.size
            expected = header.last_offset + 1
        loaded.producers.end_offset = expected
        lost = self._truncate_segment(index, position, expected, promised_end, stop)
        if segment is not loaded.segments.active_segment:
            segment.seal()
        return lost

    def _next_base(self, index: int) -> float:
        segments = self.loaded.segments
        return segments[index + 1].base_offset if index + 1 < len(segments) else inf

    def _truncate_segment(
        self, index: int, position: int, expected: int, promised_end: int, stop: _Stop
    ) -> bool:
        """Truncate a segment after its last intact batch; return whether records are lost there."""
        segment = self.loaded.segments[index]
        cut = segment.size - position
        lost = cut > 0 and stop is _Stop.END
        if cut and stop is _Stop.OVERLAP:
            lost = not self._is_copied(index, position)
        if lost or (
            stop is _Stop.END and expected < promised_end and self._has_new_neighbours(index)
        ):
            self._log_loss(segment, position, expected)
            lost = True
        if cut:
            if stop is not _Stop.TOO_FAR and lost:
                self._keep_end(segment, position, expected)
            segment.truncate_file(position)
            segment.file.sync()
            self.loaded.cut_bytes += cut
        return lost

    def _has_new_neighbours(self, index: int) -> bool:
        """Whether later segments exist and the neighbouring segments have magic 2: an old broker
        that writes magic 0 or 1 flushes in another order."""
        segments = self.loaded.segments
        return index + 1 < len(segments) and not any(
            batch.header.magic < NEWEST_MAGIC
            for segment in list(segments)[max(index - 1, 0) : index + 2]
            for batch in islice(read_batches(segment.file, 0, segment.size), 1)
        )

    def _indexed_end(self, index: int) -> int:
        """The lowest end offset of a segment by its indexes and the next segment's base offset."""
        segments = self.loaded.segments
        segment = segments[index]
        promised = segment.indexed_ends() or [segment.base_offset]
        if self.config.compacts:  # a compacted log has holes, so that both indexes must agree
            return min(promised)
        if segment.base_offset >= (self.checkpointed.cleaned_to or 0) and index + 1 < len(segments):
            following = segments[index + 1].base_offset
            if (
                following - segment.base_offset <= MAX_RELATIVE_OFFSET
            ):  # else a wide gap, see `roll`
                promised.append(following)
        return max(promised)

    def _is_copied(self, index: int, position: int) -> bool:
        """Whether the next segment begins with the bytes behind `position`: a crash interrupted a
        split before its source was truncated."""
        file = self.loaded.segments[index].file
        following = self.loaded.segments[index + 1].file
        return all(
            following.read_at(len(chunk), at - position) == chunk
            for at, chunk in iter_chunks(file, position)
        )

    def _split(self, index: int, position: int, base_offset: int) -> None:
        """Move the batches behind `position` to a segment of their own, whose relative offsets can
        reach them (`UnifiedLog.splitOverflowedSegment`)."""
        segments = self.loaded.segments
        segment = segments[index]
        target = segment.directory / file_name(base_offset, LOG)
        copy_end(
            self.storage, segment.file, position, target, modified_ms=segment.file.modified_ms()
        )
        segments.insert_after(index, base_offset, self.now_ms)
        if position == 0:
            self.emptied.add(segment.base_offset)
        _log.warning(
            "%s: split at byte %d, offset %d: too far from the segment's base",
            segment.path(LOG), position, base_offset,
        )  # fmt: skip

    def _keep_end(self, segment: LogSegment, position: int, offset: int) -> None:
        try:
            target = self.loaded.kept.keep_end(segment.file, position, offset)
        except OSError as error:
            batches = read_batches(segment.file, position, segment.size)
            if error.errno != errno.ENOSPC or any(is_crc_valid(batch.data) for batch in batches):
                raise
            _log.warning(
                "%s: no complete batch is lost, nothing is kept: %s",
                segment.path(LOG),
                error,
            )
        else:
            if target is not None:
                _log.warning("%s: truncated bytes kept as %s", segment.path(LOG), target.name)

    def _log_loss(self, segment: LogSegment, position: int, offset: int) -> None:
        """Log lost records: a torn end is normal after a crash, but below the high watermark it is
        damage."""
        name, cut = segment.path(LOG), segment.size - position
        committed = self.checkpointed.high_watermark or 0
        if offset >= committed:
            _log.warning("%s: cut %d bytes at %d, offset %d", name, cut, position, offset)
            return
        _log.error(
            "%s: damaged at byte %d: cut %d bytes there, offset %d is missing, below the "
            "high watermark %d; if the log ends there, the partition's leader has the missing "
            "records; otherwise stop the broker and remove this folder, if another replica is "
            "complete, or restore the file from a backup",
            name, position, cut, offset, committed,
        )  # fmt: skip

    def _index_batch(self, segment: LogSegment, batch: Batch, *, intact: bool) -> None:
        header = batch.header
        segment.index_batch(
            header.last_offset,
            header.max_timestamp if intact else NO_TIMESTAMP,
            header.size,
            batch.position,
            self.config.index_interval_bytes,
        )
        if not intact:
            _log.error(
                "%s: the checksum of the batch at byte %d, offset %d, is wrong; it stays, and "
                "reads of it fail", segment.path(LOG), batch.position, header.base_offset,
            )  # fmt: skip
            return
        for aborted in apply_batch(self.loaded.producers, batch):
            segment.txn_index.append(aborted)
        if header.partition_leader_epoch > self.newest_epoch:
            self.newest_epoch = header.partition_leader_epoch
            self.new_epochs.append((self.newest_epoch, header.base_offset))

    def _settle_offsets(self) -> None:
        loaded, segments = self.loaded, self.loaded.segments
        start = max(self.checkpointed.log_start_offset, 0)
        if len(segments):
            loaded.log_end_offset = segments.active_segment.activate()
            if self._start_is_wrong(start):
                start = 0
            start = max(start, segments.first_offset)
        if len(segments) and loaded.log_end_offset < start:
            _log.warning("%s: log ends before its start %d: emptied", segments.directory, start)
            self._keep_segments_after(-1)
        if not len(segments):
            segments.open(
                start, self.now_ms, create=True, preallocated_bytes=self.config.preallocated_bytes
            )
            loaded.log_end_offset = start
        loaded.log_start_offset = start
        loaded.kept.set_log_start(start)
        end = loaded.log_end_offset
        untouched = self.checkpointed.clean and not loaded.cut_bytes
        loaded.recovery_point = end if untouched else min(self.checkpointed.recovery_point, end)

    def _start_is_wrong(self, start: int) -> bool:
        """Whether the checkpointed log start is beyond the high watermark, which is impossible.

        If the high watermark is beyond the end, too, the end of the log was lost, as in a power
        cut; the start is then valid.
        """
        end, committed = self.loaded.log_end_offset, self.checkpointed.high_watermark
        if committed is None or start <= end or committed > end or self.loaded.cut_bytes:
            return False
        _log.error(
            "%s: %s has the start offset %d, beyond high watermark %d and end %d: ignored",
            self.loaded.segments.directory, LOG_STARTS, start, committed, end,
        )  # fmt: skip
        return True

    def _settle_epochs(self) -> None:
        loaded, epochs = self.loaded, self.loaded.epochs
        epochs.assign_all(self.new_epochs)
        if not is_epoch_cache_consistent(loaded.segments, epochs.entries, loaded.log_end_offset):
            _log.error("%s: does not match the log, rebuilt", epochs.path)
            epochs.replace(read_epochs_from_batches(loaded.segments))
        begin = epochs.entries[0][1] if epochs.entries else 0
        if loaded.log_start_offset < begin:  # the log start is lower, from its checkpoint
            before = read_epochs_from_batches(loaded.segments, begin)
            if before:
                epochs.replace([*before, *epochs.entries])
        epochs.truncate_from_end(loaded.log_end_offset)
        epochs.truncate_from_start(loaded.log_start_offset)
