"""Rebuild of the indexes of a sealed segment from its log, on a background thread."""

from __future__ import annotations

import logging

from urteil.broker.log.batch_scan import read_batches
from urteil.broker.log.file_names import LOG
from urteil.broker.log.indexes import OffsetIndex, TimeIndex
from urteil.broker.log.partition_log import PartitionLog
from urteil.broker.log.segment import LogSegment
from urteil.broker.log.storage import File, Storage

_log = logging.getLogger("urteil.broker.log")


class IndexRebuild:
    """Reads the segment's file through its own descriptor; does not access the segment.

    `done` is set at the end. If the file is missing or unreadable, no index is built.
    """

    def __init__(self, storage: Storage, segment: LogSegment, interval_bytes: int) -> None:
        self.segment = segment
        self._storage = storage
        self._path = segment.path(LOG)
        self._size = segment.size
        self._interval_bytes = interval_bytes
        self._offsets: list[bytes] = []
        self._times: list[bytes] = []
        self._newest = (-1, segment.base_offset)
        self._is_complete = False
        self.done = False

    def run(self) -> None:
        try:
            file = self._storage.open(self._path)
            try:
                self._read(file)
            finally:
                file.close()
        except OSError as error:
            _log.error("%s: its indexes cannot be rebuilt: %s", self._path, error)
        finally:
            self.done = True

    def _read(self, file: File) -> None:
        base, since, noted_ms, end = self.segment.base_offset, 0, -1, 0
        for batch in read_batches(file, 0, self._size):
            header = batch.header
            if header.max_timestamp > self._newest[0]:
                self._newest = (header.max_timestamp, header.last_offset)
            if since > self._interval_bytes:
                self._offsets.append(OffsetIndex.pack(header.last_offset - base, batch.position))
                noted_ms = self._add_time(noted_ms)
                since = 0
            since += header.size
            end = batch.position + header.size
        self._add_time(noted_ms)
        self._is_complete = end == self._size

    def _add_time(self, noted_ms: int) -> int:
        time_ms, offset = self._newest
        if time_ms > noted_ms:
            self._times.append(TimeIndex.pack(time_ms, offset - self.segment.base_offset))
        return max(time_ms, noted_ms)

    def finish(self, log: PartitionLog) -> None:
        """Install the new indexes, unless the segment was removed, truncated or is damaged: the old
        index may reach records behind the damage. Raises OSError."""
        segments = log.segments
        if self.segment in segments.misindexed:
            segments.misindexed.remove(self.segment)
        is_present = any(each is self.segment for each in segments)
        if self._is_complete and is_present and self.segment.size == self._size:
            self.segment.replace_indexes(self._offsets, self._times, self._newest)
