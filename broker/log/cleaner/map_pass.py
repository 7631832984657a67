"""The map pass of a cleaning: collect the newest offset of each key in the dirty part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from urteil.broker.log.batch_scan import Batch, read_batches
from urteil.broker.log.cleaner.background_work import Steps
from urteil.broker.log.cleaner.offset_map import OffsetMap
from urteil.broker.log.cleaner.record_scan import scan_records
from urteil.broker.log.cleaner.segment_groups import Source
from urteil.broker.log.cleaner.transaction_tracker import TransactionTracker
from urteil.broker.log.segment import DamagedSegment
from urteil.broker.log.storage import Storage
from urteil.broker.wire.batches import HEADER_BYTES, NEWEST_MAGIC, is_crc_valid, iter_stored_records
from urteil.broker.wire.compression import decompress
from urteil.broker.wire.primitives import CorruptBatch

STEP_BYTES = 1 << 20


def read_intact_batches(storage: Storage, source: Source, position: int = 0) -> Iterator[Batch]:
    """The batches of a segment. Raises DamagedSegment (OSError) unless all are intact to its
    end."""
    file = storage.open(source.path)
    expected = source.base_offset
    try:
        for batch in read_batches(file, position, source.size):
            header = batch.header
            in_order = expected <= header.base_offset and header.last_offset < source.end_offset
            if not in_order or not is_crc_valid(batch.data):
                break
            yield batch
            position, expected = batch.position + header.size, header.last_offset + 1
    finally:
        file.close()
    if position != source.size:
        raise DamagedSegment(source.path, position, expected)


def map_offsets(
    storage: Storage,
    sources: Sequence[Source],
    start: int,
    position: int,
    offsets: OffsetMap,
    tracker: TransactionTracker,
) -> Steps:
    """Fill `offsets` with the keys from offset `start` on, at `position` of the first source.

    Ends with the last source, or when the map is full.
    """
    for source in sources:
        unreported = 0
        for batch in read_intact_batches(storage, source, position):
            if offsets.is_full:
                return
            if not tracker.is_discarded(batch.header, batch.data) and not batch.header.is_control:
                _map_batch(offsets, batch, start)
            if batch.header.last_offset >= start:
                offsets.latest_offset = batch.header.last_offset
            unreported += batch.header.size
            if unreported >= STEP_BYTES:
                yield unreported
                unreported = 0
        # a hole at the end counts as clean
        offsets.latest_offset = source.end_offset - 1
        yield unreported
        position = 0


def _map_batch(offsets: OffsetMap, batch: Batch, start: int) -> None:
    header = batch.header
    if header.magic < NEWEST_MAGIC:
        pairs = [(record.key, record.offset) for record in iter_stored_records(batch.data)]
        known = [(key, offset) for key, offset in pairs if key is not None and offset >= start]
        if known:
            offsets.put(known)
        return
    try:
        body = decompress(header.compression, batch.data[HEADER_BYTES:])
        scanned = scan_records(body, header.records_count)
    except CorruptBatch as error:
        raise CorruptBatch(f"the batch at offset {header.base_offset}: {error}") from error
    base = header.base_offset
    places = [base + delta for delta in scanned.offset_deltas]
    keys: list[tuple[bytes, int]] = list(zip(scanned.keys, places, strict=True))  # type: ignore[arg-type]
    if None in scanned.keys or base < start:
        keys = [(key, offset) for key, offset in keys if key is not None and offset >= start]
    if keys:
        offsets.put(keys)
