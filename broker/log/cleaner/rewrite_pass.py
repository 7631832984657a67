"""The rewrite pass of a cleaning: copy the records that stay from a group to a new segment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from urteil.broker.log.cleaner.background_work import Steps
from urteil.broker.log.cleaner.map_pass import STEP_BYTES, read_intact_batches
from urteil.broker.log.cleaner.record_retention import RecordRetention
from urteil.broker.log.cleaner.segment_groups import Source
from urteil.broker.log.file_names import CLEANED, INDEX, TIME_INDEX
from urteil.broker.log.segment import LogSegment, PlacedBatch
from urteil.broker.log.storage import Buffer, Storage
from urteil.broker.wire.batches import read_header

_MAX_BUFFERS = 500


class _Output:
    """Collects batches and writes them in larger pieces."""

    def __init__(self, segment: LogSegment, index_interval_bytes: int) -> None:
        self._segment = segment
        self._interval = index_interval_bytes
        self._buffers: list[Buffer] = []
        self._placed: list[PlacedBatch] = []
        self._size = 0

    def add(self, batch: Buffer) -> int:
        """Add a batch; return the bytes that were written to the file."""
        header = read_header(batch)
        self._buffers.append(batch)
        self._placed.append((header.last_offset, header.max_timestamp, header.size))
        self._size += header.size
        full = self._size >= STEP_BYTES or len(self._buffers) >= _MAX_BUFFERS
        return self.flush() if full else 0

    def flush(self) -> int:
        if not self._buffers:
            return 0
        size, self._size = self._size, 0
        self._segment.append(self._buffers, size, self._placed, self._interval)
        self._buffers, self._placed = [], []
        return size


def rewrite(
    storage: Storage,
    directory: Path,
    sources: Sequence[Source],
    retention: RecordRetention,
    index_interval_bytes: int,
) -> Steps:
    """Write the `.cleaned` files of a group; they are complete and synced after the last step."""
    segment = LogSegment(storage, directory, sources[0].base_offset, 0, create=True, suffix=CLEANED)
    try:
        segment.txn_index.clear()
        output = _Output(segment, index_interval_bytes)
        for source in sources:
            used = 0
            retention.enter_segment(source.modified_ms)
            for batch in read_intact_batches(storage, source):
                kept = retention.filter_batch(batch.header, batch.data)
                used += batch.header.size
                if kept is not None:
                    used += output.add(kept)
                if used >= STEP_BYTES:
                    yield used
                    used = 0
            yield used + output.flush()
        for txn in retention.tracker.drain_retained():
            segment.txn_index.append(txn)
        segment.seal()
        segment.file.set_modified_ms(sources[-1].modified_ms)
        segment.file.sync()
        _sync_indexes(storage, segment)
    finally:
        segment.file.close()


def _sync_indexes(storage: Storage, segment: LogSegment) -> None:
    segment.txn_index.sync()
    for kind in (INDEX, TIME_INDEX):
        file = storage.open(segment.path(kind))
        try:
            file.sync()
        finally:
            file.close()
