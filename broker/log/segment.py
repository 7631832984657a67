"""One segment of a log: its file, its indexes, where its batches lie (Kafka's `LogSegment`)."""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

from urteil.broker.base.offload import STEP, Steps
from urteil.broker.log.batch_scan import iter_positions, read_batches
from urteil.broker.log.file_names import DELETED, INDEX, LOG, TIME_INDEX, TXN_INDEX, file_name
from urteil.broker.log.indexes import OffsetIndex, TimeIndex
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.storage import Buffer, File, Storage
from urteil.broker.log.txn_index import TxnIndex
from urteil.broker.wire.batches import first_offset

PlacedBatch = tuple[int, int, int]
"""(last offset, largest timestamp in ms, size in bytes) of a batch that is appended."""

MAX_RELATIVE_OFFSET = 2**31 - 1


class DamagedSegment(OSError):
    """The file holds something else than batches in the order of their offsets.

    What lies before `position` is good; it ends before `offset`.
    """

    def __init__(self, path: Path, position: int, offset: int) -> None:
        super().__init__(f"{path}: damaged at byte {position}, where offset {offset} is expected")
        self.path = path
        self.position = position
        self.offset = offset


_TAIL_BATCHES = 512
WRITTEN_AT_ONCE_BYTES = 1 << 20

_log = logging.getLogger("urteil.broker.log")


class LogSegment:
    """Appends at the end, finds positions by offset and time; whoever owns it picks the bounds.

    Not known until written or recovered: `max_timestamp_ms` and the rolling time of a segment
    that was opened from disk are read when first asked. `bound` is what its offsets stay below:
    the next segment's first one.
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
        """Open or create the files; `suffix` ends the names of what is no part of a log yet.

        Into `misindexed` goes the segment once one of its indexes led astray.
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
        self._tail = _Tail(base_offset) if self.size == 0 else None
        self._preallocated = False
        self._misindexed = [] if misindexed is None else misindexed
        self.bound = base_offset + MAX_RELATIVE_OFFSET + 1

    def preallocate(self, size: int) -> None:
        """Make the file of an empty segment that large, 0: not; what is not written is cut off when
        the segment is sealed."""
        if size:
            self.file.truncate(size)
            self._preallocated = True

    def path(self, suffix: str) -> Path:
        return self.directory / file_name(self.base_offset, suffix + self.suffix)

    def relocate(self, directory: Path) -> None:
        """The log's folder was renamed; the open file stays what it is."""
        self.directory = directory
        self.file.path = self.path(LOG)
        self.offset_index.path = self.path(INDEX)
        self.time_index.path = self.path(TIME_INDEX)
        self.txn_index.path = self.path(TXN_INDEX)

    # Writing

    def append(
        self, buffers: Sequence[Buffer], size: int, placed: Sequence[PlacedBatch], interval: int
    ) -> None:
        """Write whole batches at the end and note them in the indexes.

        Raises OSError when the storage does; the segment is then as it was before, unless
        cutting the file failed too.
        """
        position = self.size
        try:
            if self._has_ahead(buffers):
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
        """Write what follows the head of a large batch behind the end, piece by piece, where it is
        no part of the log. An append of that batch that finds the end where it was has the head
        left to write; else `drop_write_ahead` cuts it off. Raises OSError when the storage does."""
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

    def _has_ahead(self, buffers: Sequence[Buffer]) -> bool:
        """Whether all but the first of the buffers is written already."""
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
        """Cut off what was written behind the end, if anything was."""
        if self._ahead is not None:
            self._ahead = None
            if self.file.is_open:
                self.file.truncate(self.size)

    def index_batch(
        self, last_offset: int, max_timestamp_ms: int, size: int, position: int, interval: int
    ) -> None:
        """Keep in the indexes that a batch lies at `position`, the end of all before it."""
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
        """Start over with empty indexes, to be filled by `note` in a scan of the whole file."""
        self.offset_index.clear()
        self.time_index.clear()
        self.txn_index.clear()
        self._bytes_since_index = 0
        self._max_timestamp = (-1, self.base_offset)
        self._rolling_timestamp_ms = None
        self._tail = _Tail(self.base_offset)

    def truncate_file(self, size: int) -> None:
        """Drop the file's bytes from `size` on, which no index knows."""
        self.file.truncate(size)
        self.size = size

    def truncate(self, offset: int) -> int:
        """Drop the batch that holds `offset` and all after it; returns the new end offset.

        The end is below `offset` when it lies inside a batch: batches are kept whole.
        """
        try:
            position = self.position_of(offset)
        except DamagedSegment as damage:
            _log.error("%s: all from there on is dropped", damage)
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
        self._tail = _Tail(end)
        if position == 0:
            self._rolling_timestamp_ms = None
        self._bytes_since_index = 0
        return end

    # Finding

    def activate(self) -> int:
        """Become the segment that is appended to; returns its end offset."""
        if self._tail is None:
            self._tail = _Tail(self.end_offset())
        return self._tail.end_offset

    def position_of(self, offset: int) -> int | None:
        """The position of the first batch that ends at `offset` or later.

        An index that leads astray is passed over. Raises DamagedSegment where the file ends
        otherwise than with a batch before such a batch is found.
        """
        if self._tail is not None:
            found = self._tail.find(offset)
            if found >= 0:
                return found
            if offset >= self._tail.end_offset:
                return None
        slot, start = self.offset_index.lookup(offset)
        if slot < 0:
            return self._find(0, offset)
        try:
            if start <= 0:  # no entry tells what everybody knows
                raise DamagedSegment(self.offset_index.path, self.size, offset)
            return self._find(start, offset)
        except DamagedSegment as damage:
            return self._find_from_earlier_entry(slot, offset, damage)

    def _find_from_earlier_entry(
        self, slot: int, offset: int, damage: DamagedSegment
    ) -> int | None:
        """From entries ever further back: where two of them agree that the way ends, it is the
        log that is damaged, not its index."""
        step = 1
        while True:
            slot, step = slot - step, 2 * step
            start = self.offset_index.entry(slot)[1] if slot >= 0 else 0
            if slot >= 0 and start >= damage.position:
                continue
            try:
                found = self._find(start, offset)
            except DamagedSegment as again:
                if start <= 0 or again.position == damage.position:
                    raise
                damage = again
            else:
                self._mark_misindexed(self.offset_index.path)
                return found

    def _mark_misindexed(self, path: Path) -> None:
        """Whoever looks after the log has the indexes built anew, beside its readers."""
        if self not in self._misindexed:
            _log.error("%s: does not fit its log, to be built anew", path)
            self._misindexed.append(self)

    def _find(self, start: int, offset: int) -> int | None:
        """Walk from `start`, where an index says that a batch begins, not beyond `offset`."""
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
        """Whether the batch at `position` begins no later than the one before it, whose offset
        is wrong then: no checksum covers it."""
        following = next(iter_positions(self.file, position, self.size, base_offset + 1), None)
        return following is not None and following[1] <= base_offset

    def indexed_ends(self) -> list[int]:
        """Where each index that has entries says that the segment ends at the earliest, if that
        is possible at all."""
        ends = []
        for index in (self.offset_index, self.time_index):
            if index.exists() and index.count:
                offset = index.last[0] if isinstance(index, OffsetIndex) else index.last[1]
                ends.append(offset + 1)
        return [end for end in ends if end <= self.bound]

    def end_from_index(self) -> int:
        """The offset after the last batch. Raises DamagedSegment if the way there from the last
        entry of the index is not batches to the file's very end."""
        offset, start = self.offset_index.last
        if self.size and self._find(start, offset) is None:
            raise DamagedSegment(self.file.path, start, offset)
        self._find(start, self.bound)
        return self.end_offset()

    def position_at_bound(self, bound: int) -> int:
        """Where the batches that lie wholly below offset `bound` end."""
        position = self.position_of(bound)
        return self.size if position is None else position

    def _first_offset_at(self, position: int) -> int:
        for batch in read_batches(self.file, position, self.size):
            return first_offset(batch.header, batch.data)
        raise OSError(f"{self.file.path}: no whole batch at {position}")

    def end_offset(self) -> int:
        """The offset after the last batch, the base offset of an empty segment."""
        if self._tail is not None:
            return self._tail.end_offset
        end = self.base_offset
        for _, _, last, _ in iter_positions(self.file, self.offset_index.last[1], self.size):
            end = last + 1
        return end

    # Time

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """(largest timestamp in ms, last offset of its batch); (-1, base offset) when empty."""
        if self._max_timestamp is None:
            self._max_timestamp = self._read_max_timestamp()
        return self._max_timestamp

    def _read_max_timestamp(self) -> tuple[int, int]:
        """The last entry of the time index, or what came after it."""
        best = self.time_index.last
        start = self.offset_index.lookup(best[1])[1]
        for batch in read_batches(self.file, start, self.size):
            if batch.header.max_timestamp > best[0]:
                best = (batch.header.max_timestamp, batch.header.last_offset)
        return best

    def offset_before_time(self, timestamp_ms: int) -> int:
        """An offset before which all is older than `timestamp_ms`, by the time index, as far as
        that fits the log."""
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
        """The newest record's time, else (no record has one) the file's."""
        newest = self.max_timestamp[0]
        return newest if newest >= 0 else self.file.modified_ms()

    def rolling_timestamp_ms(self) -> int | None:
        """The largest timestamp of the first batch: the age of a segment counts from it."""
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
        # spread by name in place of randomness, so that a log replays the same
        name = f"{self.directory.name} {self.base_offset}"
        shift = crc32(name.encode()) % jitter if jitter else 0
        begin = self.rolling_timestamp_ms()
        if begin is not None and begin >= 0:
            return max_timestamp_ms - begin > config.max_segment_ms - shift
        return now_ms - self.created_ms > config.max_segment_ms - shift

    # Files

    def seal(self) -> None:
        """The segment becomes inactive: its file as long as what is in it, the last time entry,
        indexes written and let go."""
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
        """Have these entries in sealed indexes; `newest` is the `max_timestamp` they end with."""
        self.offset_index.replace(b"".join(offsets))
        self.time_index.replace(b"".join(times))
        self._max_timestamp = newest

    def flush_indexes(self) -> None:
        self.offset_index.flush()
        self.time_index.flush()

    def rename_deleted(self) -> list[Path]:
        """Close and rename all files to `.deleted`; returns them, to be removed later."""
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
        """Close and remove all files, the log's own last, so that a crash leaves no orphan."""
        self.file.close()
        self.offset_index.remove()
        self.time_index.remove()
        self.txn_index.clear()
        self._storage.remove(self.path(LOG))


class _Tail:
    """Where the newest batches of an active segment lie, so that reads there scan nothing."""

    __slots__ = ("_lasts", "_positions", "_start_offset", "end_offset")

    def __init__(self, start_offset: int) -> None:
        self._start_offset = start_offset
        self.end_offset = start_offset
        self._lasts = array("q")
        self._positions = array("q")

    def add(self, last_offset: int, position: int) -> None:
        if len(self._lasts) >= 2 * _TAIL_BATCHES:
            self._start_offset = self._lasts[_TAIL_BATCHES - 1] + 1
            del self._lasts[:_TAIL_BATCHES], self._positions[:_TAIL_BATCHES]
        self._lasts.append(last_offset)
        self._positions.append(position)
        self.end_offset = last_offset + 1

    def find(self, offset: int) -> int:
        """The position of the first batch that ends at `offset` or later; -1: not known here."""
        if offset < self._start_offset or offset >= self.end_offset:
            return -1
        return self._positions[bisect_left(self._lasts, offset)]
