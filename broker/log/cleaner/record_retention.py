"""The records of a batch that a cleaning keeps (`Cleaner.cleanInto`, `MemoryRecords.filterTo`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from urteil.broker.log.cleaner.batch_rebuild import empty_batch, rebuild_batch
from urteil.broker.log.cleaner.offset_map import OffsetMap
from urteil.broker.log.cleaner.record_scan import ScannedRecords, scan_records
from urteil.broker.log.cleaner.transaction_tracker import TransactionTracker
from urteil.broker.log.storage import Buffer
from urteil.broker.wire.batch_header import LOG_APPEND_TIME, OF_TRANSACTIONS
from urteil.broker.wire.batches import (
    HEADER_BYTES,
    NEWEST_MAGIC,
    BatchHeader,
    Record,
    iter_stored_records,
)
from urteil.broker.wire.compression import decompress
from urteil.broker.wire.downconversion import message_set

LastRecords = Mapping[int, tuple[int | None, int]]
"""By producer id: the last data offset, if the log has one, and the producer epoch."""


@dataclass(slots=True, kw_only=True)
class RecordRetention:
    """The rules of one cleaning, applied to its batches in order.

    `round_end` is the offset before which this cleaning ends. The batch that ends there stays, even
    if without records; otherwise followers and readers never reach the end (KAFKA-17076).
    """

    offsets: OffsetMap
    tracker: TransactionTracker
    last_records: LastRecords
    round_end: int
    now_ms: int
    delete_retention_ms: int
    cleaned_ms: int | None = None
    """The modification time of the newest segment that was cleaned before."""
    records_read: int = 0
    records_kept: int = 0
    _keeps_old_tombstones: bool = True

    def enter_segment(self, modified_ms: int) -> None:
        """Begin a segment with this modification time, by which tombstones of magic 0 and 1 expire:
        they cannot hold a delete horizon (`Cleaner.cleanSegments`)."""
        self._keeps_old_tombstones = (
            self.cleaned_ms is None or modified_ms > self.cleaned_ms - self.delete_retention_ms
        )

    def filter_batch(self, header: BatchHeader, data: memoryview) -> Buffer | None:
        """The batch as it is copied, None if it is removed. Raises CorruptBatch."""
        if header.magic < NEWEST_MAGIC:
            return self._filter_old_messages(header, data)
        self.records_read += header.records_count
        discarded = self.tracker.is_discarded(header, data)
        without_txn = discarded and header.is_control
        if without_txn:
            # a marker expires by time, like a tombstone: readers may be inside its transaction
            discarded = self._is_past_horizon(header)
        kept = None if discarded else self._select_records(header, data)
        if kept is None:
            return empty_batch(header) if self._must_stay(header) else None
        return self._rewrite(header, data, kept, without_txn=without_txn)

    def _filter_old_messages(self, header: BatchHeader, data: memoryview) -> Buffer | None:
        """`filter_batch` for messages of magic 0 and 1, which keep their format."""
        records = list(iter_stored_records(data))
        kept = [record for record in records if self._keeps_old(record)]
        self.records_read += len(records)
        self.records_kept += len(kept)
        if len(kept) == len(records):
            return data
        stamp = LOG_APPEND_TIME if header.timestamp_type else 0
        return message_set(kept, header.magic, header.compression, stamp) if kept else None

    def _keeps_old(self, record: Record) -> bool:
        if record.offset > self.offsets.latest_offset:
            return True
        if record.key is None or self.offsets.offsets.get(record.key, -1) > record.offset:
            return False
        return record.value is not None or self._keeps_old_tombstones

    def _is_past_horizon(self, header: BatchHeader) -> bool:
        return header.has_delete_horizon and header.base_timestamp <= self.now_ms

    def _must_stay(self, header: BatchHeader) -> bool:
        """Whether the batch stays even without records."""
        if header.next_offset == self.round_end:
            return True
        if not header.has_producer_id or header.producer_id not in self.last_records:
            return False
        offset, epoch = self.last_records[header.producer_id]
        if offset is None:
            return header.is_control and header.producer_epoch == epoch
        return header.last_offset == offset

    def _select_records(
        self, header: BatchHeader, data: memoryview
    ) -> tuple[bytes, ScannedRecords, list[int]] | None:
        """The records and the numbers of those that stay; None if none does."""
        if not header.records_count or self._is_superseded(header):
            return None
        body = decompress(header.compression, data[HEADER_BYTES:])
        scanned = scan_records(body, header.records_count)
        numbers: list[int] = list(range(header.records_count))
        if not header.is_control:
            numbers = self._select_newest(header, scanned)
            if scanned.tombstones and self._is_past_horizon(header):
                expired = {
                    number
                    for number in scanned.tombstones
                    if header.base_offset + scanned.offset_deltas[number]
                    <= self.offsets.latest_offset
                }
                numbers = [number for number in numbers if number not in expired]
        return (body, scanned, numbers) if numbers else None

    def _is_superseded(self, header: BatchHeader) -> bool:
        """Whether the offset map shows that every record has a newer one. Not for transactional
        batches: the map may lack their records."""
        return not header.attributes & OF_TRANSACTIONS and self.offsets.supersedes(
            header.base_offset, header.last_offset
        )

    def _select_newest(self, header: BatchHeader, scanned: ScannedRecords) -> list[int]:
        """The records without a later one of the same key; records without a key are dropped."""
        base, latest = header.base_offset, self.offsets.latest_offset
        known = self.offsets.offsets.get
        if header.last_offset <= latest:
            return [
                number
                for number, (key, delta) in enumerate(
                    zip(scanned.keys, scanned.offset_deltas, strict=True)
                )
                if key is not None and known(key, -1) <= base + delta
            ]
        return [
            number
            for number, (key, delta) in enumerate(
                zip(scanned.keys, scanned.offset_deltas, strict=True)
            )
            if base + delta > latest or (key is not None and known(key, -1) <= base + delta)
        ]

    def _rewrite(
        self,
        header: BatchHeader,
        data: memoryview,
        kept: tuple[bytes, ScannedRecords, list[int]],
        *,
        without_txn: bool,
    ) -> Buffer:
        body, scanned, numbers = kept
        self.records_kept += len(numbers)
        horizon_ms = None
        if not header.has_delete_horizon and (
            without_txn or not set(scanned.tombstones).isdisjoint(numbers)
        ):
            horizon_ms = self.now_ms + self.delete_retention_ms
        if horizon_ms is None and len(numbers) == header.records_count:
            return data
        return rebuild_batch(header, body, scanned, numbers, horizon_ms)
