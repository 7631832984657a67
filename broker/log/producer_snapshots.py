"""Snapshots of producer state beside the segments, `<offset>.snapshot`, version 1.

As in Kafka's `ProducerStateManager.writeSnapshot`, a snapshot has only the last batch of each
producer. After a restart earlier duplicates are recognised only if the log after the snapshot
contains them.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterable
from pathlib import Path

from urteil.broker.base.crc32c import crc32c
from urteil.broker.log.file_names import DELETED, SNAPSHOT, file_name, list_base_offsets
from urteil.broker.log.producer_states import ProducerEntry, SentBatch
from urteil.broker.log.storage import Storage

_log = logging.getLogger("urteil.broker.log")

_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch,
# first offset of the open transaction
_ENTRY = struct.Struct(">qhiqiqiq")
_VERSION = 1


class DamagedSnapshot(ValueError):
    """A snapshot with a wrong checksum, size or version."""


def encode(producers: Iterable[ProducerEntry]) -> bytes:
    rows = [_encode_entry(entry) for entry in producers]
    body = b"".join((_COUNT.pack(len(rows)), *rows))
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def _encode_entry(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else SentBatch(-1, -1, 0, -1)
    first = -1 if entry.txn_first_offset is None else entry.txn_first_offset
    return _ENTRY.pack(
        entry.producer_id,
        entry.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        entry.last_timestamp_ms,
        entry.coordinator_epoch,
        first,
    )


def decode(data: bytes) -> list[ProducerEntry]:
    """The producers of a snapshot. Raises DamagedSnapshot."""
    if len(data) < _HEAD.size + _COUNT.size:
        raise DamagedSnapshot(f"{len(data)} bytes are too few for a snapshot")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise DamagedSnapshot(f"version {version}")
    if crc != crc32c(data[_HEAD.size :]):
        raise DamagedSnapshot("wrong checksum")
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    start = _HEAD.size + _COUNT.size
    if count < 0 or start + count * _ENTRY.size != len(data):
        raise DamagedSnapshot(f"{count} entries in {len(data)} bytes")
    return [_decode_entry(row) for row in _ENTRY.iter_unpack(data[start:])]


def _decode_entry(row: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator, first = row
    batches = [SentBatch(sequence, offset, delta, timestamp)] if offset >= 0 else []
    return ProducerEntry(
        producer_id, epoch, batches, timestamp, coordinator, first if first >= 0 else None
    )


class ProducerSnapshots:
    """The snapshot files of one log."""

    __slots__ = ("_directory", "_storage", "offsets")

    def __init__(self, storage: Storage, directory: Path) -> None:
        self._storage = storage
        self._directory = directory
        self.offsets = list_base_offsets(storage, directory, SNAPSHOT)

    def path(self, offset: int) -> Path:
        return self._directory / file_name(offset, SNAPSHOT)

    def relocate(self, directory: Path) -> None:
        """Adopt the new folder of the log."""
        self._directory = directory

    def write(self, offset: int, producers: Iterable[ProducerEntry], *, sync: bool) -> None:
        """Write the producer state as of `offset`, unless it exists already."""
        if offset in self.offsets:
            return
        self._storage.write_atomic(self.path(offset), encode(producers), sync=sync)
        self.offsets.append(offset)
        self.offsets.sort()

    def newest_readable(self, not_beyond: int) -> tuple[int, list[ProducerEntry]] | None:
        """The newest readable snapshot at or before an offset; damaged ones are deleted."""
        for offset in [each for each in reversed(self.offsets) if each <= not_beyond]:
            try:
                return offset, decode(self._storage.read(self.path(offset)))
            except DamagedSnapshot as error:
                _log.error("%s: %s, producers are read from the log", self.path(offset), error)
                self.remove(offset)
        return None

    def remove(self, offset: int) -> None:
        if offset in self.offsets:
            self.offsets.remove(offset)
        self._storage.remove(self.path(offset))

    def rename_deleted(self, offset: int) -> list[Path]:
        """Rename a snapshot to `.deleted`; return its path, to be removed later."""
        if offset not in self.offsets:
            return []
        self.offsets.remove(offset)
        path = self.path(offset)
        target = path.with_name(path.name + DELETED)
        self._storage.rename(path, target)
        return [target]

    def remove_outside(self, start: int, end: int) -> None:
        """Remove the snapshots at or before `start` and those beyond `end`."""
        for offset in [each for each in self.offsets if not start < each <= end]:
            self.remove(offset)

    def remove_strays(self, segment_offsets: Iterable[int]) -> None:
        """Remove the snapshots of no segment's base offset, except the newest snapshot."""
        keep = set(segment_offsets)
        for offset in self.offsets[:-1]:
            if offset not in keep:
                self.remove(offset)
