"""The sparse indexes of a segment (Kafka's `OffsetIndex` and `TimeIndex`).

A growing index keeps its entries in memory and writes them in chunks, and when the segment is
flushed, rolled or closed; after a crash it is rebuilt from the log. A sealed index is searched on
disk. It is not memory-mapped: a file truncated by another process would kill the broker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from urteil.broker.log.storage import Storage

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_CHUNK_BYTES = 2048
_WINDOW_ENTRIES = 512


class _Index:
    """Entries of one size, in the order of their first number, the key."""

    __slots__ = ("_count", "_growing", "_storage", "_written", "base_offset", "path")
    ENTRY: ClassVar[int]
    KEY: ClassVar[struct.Struct]

    def __init__(self, storage: Storage, path: Path, base_offset: int, *, create: bool) -> None:
        self._storage = storage
        self.path = path
        self.base_offset = base_offset
        self._growing: bytearray | None = None
        self._count = -1  # of a sealed index; -1: not read yet
        self._written = 0
        if create:
            self.clear()

    def _store(self, data: bytes) -> None:
        """Replace the content of the file by `data`."""
        file = self._storage.open(self.path, create=True)
        try:
            file.truncate(0)
            if data:
                file.write_at([data], len(data), 0)
        finally:
            file.close()
        self._written = len(data)

    def _read(self, position: int, size: int) -> bytes:
        if self._growing is not None:
            return bytes(self._growing[position : position + size])
        file = self._storage.open(self.path)
        try:
            data = file.read_at(size, position)
        finally:
            file.close()
        if len(data) != size:
            raise OSError(f"{self.path}: truncated by another process")
        return data

    @property
    def count(self) -> int:
        """The number of entries."""
        if self._growing is not None:
            return len(self._growing) // self.ENTRY
        if self._count < 0:
            self._count = self._file_size() // self.ENTRY
        return self._count

    def _file_size(self) -> int:
        file = self._storage.open(self.path)
        try:
            return file.size()
        finally:
            file.close()

    def is_full(self, max_bytes: int) -> bool:
        """Whether an index limited to `max_bytes` has no room for another entry."""
        return self.count >= max_bytes // self.ENTRY

    def _count_below(self, key: int, upto: int | None = None) -> int:
        """The number of entries with a smaller key, among all or the first `upto`."""
        low, high = 0, self.count if upto is None else max(0, min(upto, self.count))
        window: bytes | bytearray = b""
        first = 0
        if self._growing is not None:
            window = self._growing
        while low < high:
            if not window and high - low <= _WINDOW_ENTRIES:
                window, first = self._read(low * self.ENTRY, (high - low) * self.ENTRY), low
            middle = (low + high) // 2
            at = (middle - first) * self.ENTRY
            entry = window[at : at + self.ENTRY] or self._read(middle * self.ENTRY, self.ENTRY)
            if self.KEY.unpack_from(entry)[0] < key:
                low = middle + 1
            else:
                high = middle
        return low

    def _append(self, entry: bytes) -> None:
        data = self._thaw() if self._growing is None else self._growing
        data += entry
        if len(data) - self._written >= _CHUNK_BYTES:
            self.flush()

    def _thaw(self) -> bytearray:
        """Load the entries into memory so that the index can grow."""
        if self._growing is None:
            data = bytearray(self._read(0, self.count * self.ENTRY))
            self._store(bytes(data))
            self._growing = data
        return self._growing

    def flush(self) -> None:
        """Write the entries that are not in the file yet, without a sync."""
        data = self._growing
        if data is None or len(data) == self._written:
            return
        file = self._storage.open(self.path)
        try:
            part = bytes(data[self._written :])
            file.write_at([part], len(part), self._written)
        finally:
            file.close()
        self._written = len(data)

    def seal(self) -> None:
        """Write all entries and free the memory; the file ends with its last entry."""
        self.flush()
        if self._growing is not None:
            self._count = self.count
            self._growing = None

    def clear(self) -> None:
        """Remove all entries; create the file if it is missing."""
        self._store(b"")
        self._growing = bytearray()

    def _truncate_to_count(self, count: int) -> None:
        if count < self.count:
            data = self._thaw()
            del data[count * self.ENTRY :]
            self._store(bytes(data))

    def replace(self, data: bytes) -> None:
        """Replace all entries by those encoded in `data`; the index is sealed then."""
        self._store(data)
        self._growing, self._count = None, len(data) // self.ENTRY

    def exists(self) -> bool:
        """Whether the file is there."""
        return self._storage.exists(self.path)

    def _has_complete_entries(self) -> bool:
        return self._file_size() % self.ENTRY == 0

    def remove(self) -> None:
        """Remove the file."""
        self._storage.remove(self.path)


class OffsetIndex(_Index):
    """(relative offset of a batch's last record, position of the batch)."""

    __slots__ = ()
    ENTRY = 8
    KEY = _INT

    def entry(self, slot: int) -> tuple[int, int]:
        """(absolute offset, position) of the entry at `slot`."""
        relative, position = _OFFSET_ENTRY.unpack(self._read(slot * 8, 8))
        return self.base_offset + relative, position

    def entries(self) -> Iterator[tuple[int, int]]:
        return (self.entry(slot) for slot in range(self.count))

    @property
    def last(self) -> tuple[int, int]:
        """The last entry, (base offset, 0) without any."""
        count = self.count
        return self.entry(count - 1) if count else (self.base_offset, 0)

    def append(self, offset: int, position: int) -> None:
        self._append(_OFFSET_ENTRY.pack(offset - self.base_offset, position))

    def lookup(self, offset: int) -> tuple[int, int]:
        """(slot, position of a batch at or before the one that holds `offset`); slot -1 and
        position 0 without an entry."""
        below = self._count_below(offset - self.base_offset + 1)
        return below - 1, self.entry(below - 1)[1] if below else 0

    @staticmethod
    def pack(offset: int, position: int) -> bytes:
        """Encode an entry from its relative offset."""
        return _OFFSET_ENTRY.pack(offset, position)

    def truncate(self, offset: int) -> None:
        """Drop entries of `offset` and later."""
        self._truncate_to_count(self._count_below(offset - self.base_offset))

    def is_sane(self, log_size: int) -> bool:
        """Whether the entries are complete and the last one lies in a log of `log_size` bytes."""
        if not self._has_complete_entries():
            return False
        if not self.count:
            return True
        offset, position = self.last
        return offset >= self.base_offset and 0 <= position < max(log_size, 1)


class TimeIndex(_Index):
    """(largest timestamp so far, relative last offset of the batch that has it)."""

    __slots__ = ()
    ENTRY = 12
    KEY = _LONG

    def entry(self, slot: int) -> tuple[int, int]:
        """(timestamp in ms, absolute offset) of the entry at `slot`."""
        timestamp_ms, relative = _TIME_ENTRY.unpack(self._read(slot * 12, 12))
        return timestamp_ms, self.base_offset + relative

    def entries(self) -> Iterator[tuple[int, int]]:
        return (self.entry(slot) for slot in range(self.count))

    @property
    def last(self) -> tuple[int, int]:
        """The last entry, (-1, base offset) without any."""
        count = self.count
        return self.entry(count - 1) if count else (-1, self.base_offset)

    def maybe_append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry if its time is newer than the last one's."""
        growing = self._growing  # a hot path: called for every indexed batch of an append
        newest_ms = _LONG.unpack_from(growing, len(growing) - 12)[0] if growing else self.last[0]
        if timestamp_ms > newest_ms:
            self._append(_TIME_ENTRY.pack(timestamp_ms, offset - self.base_offset))

    def is_full(self, max_bytes: int) -> bool:
        """Whether the index is full; one slot stays free for the entry that `seal` adds."""
        return self.count >= max_bytes // 12 - 1

    def lookup(self, timestamp_ms: int, *, upto: int | None = None) -> tuple[int, tuple[int, int]]:
        """(slot, the last entry not newer than `timestamp_ms`), among all or the first `upto`.

        Without such an entry: (-1, (-1, base offset)).
        """
        below = self._count_below(timestamp_ms + 1, upto)
        return below - 1, self.entry(below - 1) if below else (-1, self.base_offset)

    @staticmethod
    def pack(timestamp_ms: int, offset: int) -> bytes:
        """Encode an entry from its relative offset."""
        return _TIME_ENTRY.pack(timestamp_ms, offset)

    def truncate(self, offset: int) -> None:
        """Drop entries of `offset` and later."""
        self._thaw()
        count = self.count
        while count and self.entry(count - 1)[1] >= offset:
            count -= 1
        self._truncate_to_count(count)

    def is_sane(self) -> bool:
        """Whether the entries are complete and the last is not older than the first."""
        if not self._has_complete_entries():
            return False
        if not self.count:
            return True
        timestamp_ms, offset = self.last
        return offset >= self.base_offset and timestamp_ms >= self.entry(0)[0]
