"""One segment of a log: the batches from its base offset on, and their indexes (`LogSegment`).

A segment is a `.log` file with an offset index, a time index and, if transactions were aborted in
it, a transaction index. Reads look up a position in the offset index and scan forward over batch
heads. The indexes have no checksum, so every lookup is checked against the batches: an index that
leads to a wrong place is bypassed, and the segment is marked for a rebuild of its indexes. An
active segment also keeps the positions of its newest batches in memory (`TailPositions`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from urteil.broker.base.offload import STEP, Steps
from urteil.broker.log.batch_scan import iter_positions, read_batches
from urteil.broker.log.file_names import DELETED, INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from urteil.broker.log.indexes import OffsetIndex, TimeIndex
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.storage import Buffer, File, Storage
from urteil.broker.log.tail_positions import TailPositions
from urteil.broker.log.txn_index import TxnIndex
from urteil.broker.wire.batches import first_offset

PlacedBatch = tuple[int, int, int]
"""(last offset, largest timestamp in ms, size in bytes) of an appended batch."""

MAX_RELATIVE_OFFSET = 2**31 - 1


class DamagedSegment(OSError):
    """The file does not continue with batches in offset order.

    The batches before `position` are intact and end before `offset`.
    """

    def __init__(self, path: Path, position: int, offset: int) -> None:
        super().__init__(f"{path}: damaged at byte {position}, where offset {offset} is expected")
        self.path = path
        self.position = position
        self.offset = offset


WRITTEN_AT_ONCE_BYTES = 1 << 20

_log = logging.getLogger("urteil.broker.log")


class LogSegment:
    """Appends batches at the end and finds positions by offset and by time.

    The largest and the first timestamp of a segment opened from disk are read at first use. All
    offsets are below `bound`, the next segment's base offset.
    """

    __slots__ = (
        "_ahead",
        "_bytes_since_index",
        "_max_timestamp",
        "_misindexed",
        "_preallocated",
        "_rolling_timestamp_ms",
        "_storage",
        "_tail",
        "base_offset",
        "bound",
        "created_ms",
        "directory",
        "file",
        "offset_index",
        "size",
        "suffix",
        "time_index",
        "txn_index",
    )

    def __init__(
        self,
        storage: Storage,
        directory: Path,
        base_offset: int,
        now_ms: int,
        *,
        create: bool,
        suffix: str = "",
        misindexed: list[LogSegment] | None = None,
    ) -> None:
        """Open or create the files; a `suffix` such as `.cleaned` marks a segment outside the log.

        The segment adds itself to `misindexed` when one of its indexes does not match its batches.
        """
        self._storage = storage
        self.directory = directory
        self.suffix = suffix
        self.base_offset = base_offset
        self.created_ms = now_ms
        self.file: File = storage.open(self.path(LOG), create=create)
        if create:
            self.file.truncate(0)
        self.size = self.file.size()
        self.offset_index = OffsetIndex(storage, self.path(INDEX), base_offset, create=create)
        self.time_index = TimeIndex(storage, self.path(TIME_INDEX), base_offset, create=create)
        self.txn_index = TxnIndex(storage, self.path(TXN_INDEX))
        self._ahead: tuple[int, memoryview] | None = None
        self._bytes_since_index = 0
        self._rolling_timestamp_ms: int | None = None
        self._max_timestamp: tuple[int, int] | None = (-1, base_offset) if create else None
        self._tail = TailPositions(base_offset) if self.size == 0 else None
        self._preallocated = False
        self._misindexed = [] if misindexed is None else misindexed
        self.bound = base_offset + MAX_RELATIVE_OFFSET + 1

    def preallocate(self, size: int) -> None:
        """Extend the file of an empty segment to `size` bytes, unless 0; `seal` cuts off the unused
        end."""
        if size:
            self.file.truncate(size)
            self._preallocated = True

    def path(self, suffix: str) -> Path:
        return self.directory / file_name(self.base_offset, suffix + self.suffix)

    def relocate(self, directory: Path) -> None:
        """Adopt the new folder of the log; the file stays open."""
        self.directory = directory
        self.file.path = self.path(LOG)
        self.offset_index.path = self.path(INDEX)
        self.time_index.path = self.path(TIME_INDEX)
        self.txn_index.path = self.path(TXN_INDEX)

    # Writing

    def append(
        self, buffers: Sequence[Buffer], size: int, placed: Sequence[PlacedBatch], interval: int
    ) -> None:
        """Write complete batches at the end and index them.

        Raises OSError; the segment is then unchanged, unless the truncation of the file failed too.
        """
        position = self.size
        try:
            if self._is_written_ahead(buffers):
                self.file.write_at(buffers[:1], len(buffers[0]), position)
                self._ahead = None
            else:
                self.drop_write_ahead()
                self.file.write_at(buffers, size, position)
        except OSError:
            self.file.truncate(position)
            raise
        if position == 0:
            self._rolling_timestamp_ms = placed[0][1]
        for last_offset, max_timestamp_ms, batch_size in placed:
            self.index_batch(last_offset, max_timestamp_ms, batch_size, position, interval)
            position += batch_size
        self.size = position

    def write_ahead(self, body: memoryview, head_bytes: int) -> Steps[None]:
        """Write a large batch without its head behind the end of the file, piece by piece; it is no
        part of the log yet.

        If the end has not moved, `append` of that batch writes the head alone. Otherwise
        `drop_write_ahead` cuts the bytes off. Raises OSError.
        """
        position = self.size
        self._ahead = (-1, body)
        for start in range(0, len(body), WRITTEN_AT_ONCE_BYTES):
            if self.size != position or self._ahead is None or not self.file.is_open:
                return
            piece = body[start : start + WRITTEN_AT_ONCE_BYTES]
            self.file.write_at([piece], len(piece), position + head_bytes + start)
            yield STEP
        if self.size == position and self._ahead is not None:
            self._ahead = (position, body)

    def _is_written_ahead(self, buffers: Sequence[Buffer]) -> bool:
        """Whether all buffers but the first, the head, are written already."""
        if self._ahead is None or len(buffers) != 2:
            return False
        (position, body), rest = self._ahead, buffers[1]
        return (
            position == self.size
            and isinstance(rest, memoryview)
            and rest.obj is body.obj
            and len(rest) == len(body)
        )

    def drop_write_ahead(self) -> None:
        """Cut off the bytes that `write_ahead` wrote behind the end, if there are any."""
        if self._ahead is not None:
            self._ahead = None
            if self.file.is_open:
                self.file.truncate(self.size)

    def index_batch(
        self, last_offset: int, max_timestamp_ms: int, size: int, position: int, interval: int
    ) -> None:
        """Index a batch that lies at `position`, behind all indexed batches."""
        newest = self._max_timestamp
        if newest is None:
            newest = self._max_timestamp = self._read_max_timestamp()
        if max_timestamp_ms > newest[0]:
            newest = self._max_timestamp = (max_timestamp_ms, last_offset)
        if self._bytes_since_index > interval:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(*newest)
            self._bytes_since_index = 0
        self._bytes_since_index += size
        if self._tail is not None:
            self._tail.add(last_offset, position)

    def clear_indexes(self) -> None:
        """Empty all indexes; the caller refills them by `index_batch` for every batch."""
        self.offset_index.clear()
        self.time_index.clear()
        self.txn_index.clear()
        self._bytes_since_index = 0
        self._max_timestamp = (-1, self.base_offset)
        self._rolling_timestamp_ms = None
        self._tail = TailPositions(self.base_offset)

    def truncate_file(self, size: int) -> None:
        """Truncate the file to `size`; the indexes must have no entries beyond it."""
        self.file.truncate(size)
        self.size = size

    def truncate(self, offset: int) -> int:
        """Remove the batch that holds `offset` and all batches after it; return the new end offset.

        The end is below `offset` if `offset` lies inside a batch: batches are removed as a whole.
        """
        try:
            position = self.position_of(offset)
        except DamagedSegment as damage:
            _log.error("%s: everything from there on is dropped", damage)
            position, end = damage.position, damage.offset
        else:
            if position is None:
                return self.end_offset()
            end = min(offset, self._first_offset_at(position))
        self.offset_index.truncate(end)
        self.time_index.truncate(end)
        self.txn_index.truncate(end)
        self.truncate_file(position)
        self._max_timestamp = None
        self._tail = TailPositions(end)
        if position == 0:
            self._rolling_timestamp_ms = None
        self._bytes_since_index = 0
        return end

    # Lookup by offset

    def activate(self) -> int:
        """Become the active segment; return the end offset."""
        if self._tail is None:
            self._tail = TailPositions(self.end_offset())
        return self._tail.end_offset

    def position_of(self, offset: int) -> int | None:
        """The position of the first batch that ends at `offset` or later, None if there is none.

        Wrong index entries are bypassed. Raises DamagedSegment if the file is damaged before such a
        batch.
        """
        if self._tail is not None:
            position = self._tail.find(offset)
            if position >= 0:
                return position
            if offset >= self._tail.end_offset:
                return None
        slot, start = self.offset_index.lookup(offset)
        if slot < 0:
            return self._find(0, offset)
        try:
            if start <= 0:  # no valid entry points to the begin of the file
                raise DamagedSegment(self.offset_index.path, self.size, offset)
            return self._find(start, offset)
        except DamagedSegment as damage:
            return self._find_from_earlier_entry(slot, offset, damage)

    def _find_from_earlier_entry(
        self, slot: int, offset: int, damage: DamagedSegment
    ) -> int | None:
        """Retry from earlier and earlier index entries. If two entries lead to the same damaged
        position, the log is damaged, not the index."""
        step = 1
        while True:
            slot, step = slot - step, 2 * step
            start = self.offset_index.entry(slot)[1] if slot >= 0 else 0
            if slot >= 0 and start >= damage.position:
                continue
            try:
                position = self._find(start, offset)
            except DamagedSegment as other:
                if start <= 0 or other.position == damage.position:
                    raise
                damage = other
            else:
                self._mark_misindexed(self.offset_index.path)
                return position

    def _mark_misindexed(self, path: Path) -> None:
        """Request a rebuild of the indexes, which `maintenance` runs in the background."""
        if self not in self._misindexed:
            _log.error("%s: does not match its log, will be rebuilt", path)
            self._misindexed.append(self)

    def _find(self, start: int, offset: int) -> int | None:
        """Scan from `start`, a batch's position by the index, for the first batch that ends at
        `offset` or later."""
        expected = self.base_offset
        bound = self._tail.end_offset if self._tail is not None else self.bound
        if not 0 <= start <= self.size:
            raise DamagedSegment(self.file.path, start, offset)
        after = start
        for position, base, last, size in iter_positions(self.file, start, self.size, expected):
            if not expected <= base <= last < bound or (position == start > 0 and base > offset):
                break
            if last >= offset:
                if base > offset and self._is_followed_by_lower_offset(position + size, base):
                    break
                return position
            expected, after = last + 1, position + size
        if after != self.size:
            raise DamagedSegment(self.file.path, after, expected)
        return None

    def _is_followed_by_lower_offset(self, position: int, base_offset: int) -> bool:
        """Whether the batch at `position` does not begin after `base_offset`, the previous batch's.
        The previous offset is then wrong: no checksum covers it."""
        following = next(iter_positions(self.file, position, self.size, base_offset + 1), None)
        return following is not None and following[1] <= base_offset

    def indexed_ends(self) -> list[int]:
        """The lowest possible end offsets of the segment by the last entry of each index; entries
        beyond `bound` are ignored."""
        end_offsets = []
        for index in (self.offset_index, self.time_index):
            if index.exists() and index.count:
                offset = index.last[0] if isinstance(index, OffsetIndex) else index.last[1]
                end_offsets.append(offset + 1)
        return [end for end in end_offsets if end <= self.bound]

    def end_from_index(self) -> int:
        """The offset after the last batch. Raises DamagedSegment unless the file consists of
        batches from the last index entry to its end."""
        offset, start = self.offset_index.last
        if self.size and self._find(start, offset) is None:
            raise DamagedSegment(self.file.path, start, offset)
        self._find(start, self.bound)
        return self.end_offset()

    def position_at_bound(self, bound: int) -> int:
        """The end position of the batches that lie completely below offset `bound`."""
        position = self.position_of(bound)
        return self.size if position is None else position

    def _first_offset_at(self, position: int) -> int:
        for batch in read_batches(self.file, position, self.size):
            return first_offset(batch.header, batch.data)
        raise OSError(f"{self.file.path}: no complete batch at {position}")

    def end_offset(self) -> int:
        """The offset after the last batch, the base offset of an empty segment."""
        if self._tail is not None:
            return self._tail.end_offset
        end = self.base_offset
        for _, _, last, _ in iter_positions(self.file, self.offset_index.last[1], self.size):
            end = last + 1
        return end

    # Lookup by time

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """(largest timestamp in ms, last offset of its batch); (-1, base offset) when empty."""
        if self._max_timestamp is None:
            self._max_timestamp = self._read_max_timestamp()
        return self._max_timestamp

    def _read_max_timestamp(self) -> tuple[int, int]:
        """The maximum of the last time index entry and the batches after it."""
        best = self.time_index.last
        start = self.offset_index.lookup(best[1])[1]
        for batch in read_batches(self.file, start, self.size):
            if batch.header.max_timestamp > best[0]:
                best = (batch.header.max_timestamp, batch.header.last_offset)
        return best

    def offset_before_time(self, timestamp_ms: int) -> int:
        """An offset below which all records are older than `timestamp_ms`, by the entries of the
        time index that match the log."""
        slot, entry = self.time_index.lookup(timestamp_ms - 1)
        step = 1
        while not self._is_newest_at(*entry):
            self._mark_misindexed(self.time_index.path)
            slot, entry = self.time_index.lookup(timestamp_ms - 1, upto=slot - step + 1)
            step *= 2
        return entry[1]

    def _is_newest_at(self, timestamp_ms: int, offset: int) -> bool:
        if timestamp_ms < 0:
            return True
        position = self.position_of(offset)
        if position is None:
            return False
        for batch in read_batches(self.file, position, self.size):
            return batch.header.max_timestamp == timestamp_ms
        return False

    def largest_timestamp_ms(self) -> int:
        """The newest record's timestamp, else (if no record has one) the file's modification
        time."""
        newest = self.max_timestamp[0]
        return newest if newest >= 0 else self.file.modified_ms()

    def rolling_timestamp_ms(self) -> int | None:
        """The largest timestamp of the first batch, from which the age of the segment counts."""
        if self._rolling_timestamp_ms is None and self.size:
            for batch in read_batches(self.file, 0, self.size):
                self._rolling_timestamp_ms = batch.header.max_timestamp
                break
        return self._rolling_timestamp_ms

    # Rolling

    def should_roll(
        self, config: LogConfig, size: int, last_offset: int, max_timestamp_ms: int, now_ms: int
    ) -> bool:
        """Whether a batch of `size` bytes that ends at `last_offset` belongs to a new segment."""
        if self.size > config.segment_bytes - size:
            return True
        if last_offset - self.base_offset > MAX_RELATIVE_OFFSET:
            return True
        if self.size and self._is_old(config, max_timestamp_ms, now_ms):
            return True
        limit = config.segment_index_bytes
        return self.offset_index.is_full(limit) or self.time_index.is_full(limit)

    def _is_old(self, config: LogConfig, max_timestamp_ms: int, now_ms: int) -> bool:
        jitter = min(config.segment_jitter_ms, config.segment_ms)
        # derived from the name instead of randomness, so that a run is repeatable
        name = f"{self.directory.name} {self.base_offset}"
        shift = crc32(name.encode()) % jitter if jitter else 0
        begin = self.rolling_timestamp_ms()
        if begin is not None and begin >= 0:
            return max_timestamp_ms - begin > config.max_segment_ms - shift
        return now_ms - self.created_ms > config.max_segment_ms - shift

    # Files

    def seal(self) -> None:
        """Become inactive: trim the file, add the last time index entry, write the indexes and free
        their memory."""
        self.drop_write_ahead()
        if self._preallocated:
            self.file.truncate(self.size)
            self._preallocated = False
        if self.size:
            self.time_index.maybe_append(*self.max_timestamp)
        self.offset_index.seal()
        self.time_index.seal()
        self._tail = None

    def replace_indexes(
        self, offsets: Sequence[bytes], times: Sequence[bytes], newest: tuple[int, int]
    ) -> None:
        """Replace the entries of both indexes; `newest` is the new `max_timestamp`."""
        self.offset_index.replace(b"".join(offsets))
        self.time_index.replace(b"".join(times))
        self._max_timestamp = newest

    def flush_indexes(self) -> None:
        self.offset_index.flush()
        self.time_index.flush()

    def rename_deleted(self) -> list[Path]:
        """Close and rename all files to `.deleted`; return the new paths, to be removed later."""
        self.file.close()
        paths = [self.path(suffix) for suffix in (LOG, INDEX, TIME_INDEX, TXN_INDEX)]
        renamed = []
        for path in paths:
            if self._storage.exists(path):
                target = path.with_name(path.name + DELETED)
                self._storage.rename(path, target)
                renamed.append(target)
        return renamed

    def remove(self) -> None:
        """Close and remove all files, the `.log` file last, so that a crash leaves no orphaned
        indexes."""
        self.file.close()
        self.offset_index.remove()
        self.time_index.remove()
        self.txn_index.clear()
        self._storage.remove(self.path(LOG))
