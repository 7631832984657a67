"""Indexes of a sealed segment built anew from its log, beside the event loop."""

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
    """Reads the segment's file through a descriptor of its own, touches no segment.

    `done` is set at the end. Where the file went away or cannot be read, nothing is built.
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
        self._is_whole = False
        self.done = False

    def run(self) -> None:
        try:
            file = self._storage.open(self._path)
            try:
                self._read(file)
            finally:
                file.close()
        except OSError as error:
            _log.error("%s: its indexes cannot be built anew: %s", self._path, error)
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
                noted_ms = self._note_time(noted_ms)
                since = 0
            since += header.size
            end = batch.position + header.size
        self._note_time(noted_ms)
        self._is_whole = end == self._size

    def _note_time(self, noted_ms: int) -> int:
        time_ms, offset = self._newest
        if time_ms > noted_ms:
            self._times.append(TimeIndex.pack(time_ms, offset - self.segment.base_offset))
        return max(time_ms, noted_ms)

    def finish(self, log: PartitionLog) -> None:
        """Put what was built in place, unless the segment went or was cut, or cannot be read to its
        end: what an index has of the part behind the damage is worth more. Raises OSError."""
        segments = log.segments
        if self.segment in segments.misindexed:
            segments.misindexed.remove(self.segment)
        stands = any(one is self.segment for one in segments)
        if self._is_whole and stands and self.segment.size == self._size:
            self.segment.replace_indexes(self._offsets, self._times, self._newest)
