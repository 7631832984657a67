"""What stays of a batch when its log is cleaned (`Cleaner.cleanInto`, `MemoryRecords.filterTo`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from urteil.broker.log.cleaner.batch_rebuild import empty_batch, rebuild_batch
from urteil.broker.log.cleaner.offset_map import OffsetMap
from urteil.broker.log.cleaner.record_scan import ScannedRecords, scan
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
"""Of each active producer the last data offset, if it has one in the log, and the epoch."""


@dataclass(slots=True, kw_only=True)
class RecordRetention:
    """The rules of one cleaning, applied to its batches in order.

    `round_end` is the offset before which this cleaning ends. The batch that ends there stays, even
    if without records; otherwise followers and readers never reach the end (KAFKA-17076).
    """

    offsets: OffsetMap
    walk: TransactionTracker
    last_records: LastRecords
    round_end: int
    now_ms: int
    delete_retention_ms: int
    cleaned_ms: int | None = None
    """When the newest segment that was cleaned before was last written to."""
    records_read: int = 0
    records_kept: int = 0
    _keeps_old_tombstones: bool = True

    def enter(self, modified_ms: int) -> None:
        """What comes next lies in a segment that was last written to at that time. Tombstones of
        magic 0 and 1, which cannot bear a time to go by, go by it (`Cleaner.cleanSegments`)."""
        self._keeps_old_tombstones = (
            self.cleaned_ms is None or modified_ms > self.cleaned_ms - self.delete_retention_ms
        )

    def of(self, header: BatchHeader, data: memoryview) -> Buffer | None:
        """The batch as it goes on, None if it goes. Raises CorruptBatch."""
        if header.magic < NEWEST_MAGIC:
            return self._of_old(header, data)
        self.records_read += header.records_count
        discarded = self.walk.discards(header, data)
        without_txn = discarded and header.is_control
        if without_txn:
            # a marker goes by the clock, as tombstones do: readers may be in its transaction
            discarded = self._is_over(header)
        kept = None if discarded else self._kept(header, data)
        if kept is None:
            return empty_batch(header) if self._is_needed(header) else None
        return self._written(header, data, kept, without_txn=without_txn)

    def _of_old(self, header: BatchHeader, data: memoryview) -> Buffer | None:
        """The same for messages of magic 0 and 1, which keep their format."""
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

    def _is_over(self, header: BatchHeader) -> bool:
        return header.has_delete_horizon and header.base_timestamp <= self.now_ms

    def _is_needed(self, header: BatchHeader) -> bool:
        """Whether even a batch without records has to stay."""
        if header.next_offset == self.round_end:
            return True
        if not header.has_producer_id or header.producer_id not in self.last_records:
            return False
        offset, epoch = self.last_records[header.producer_id]
        if offset is None:
            return header.is_control and header.producer_epoch == epoch
        return header.last_offset == offset

    def _kept(
        self, header: BatchHeader, data: memoryview
    ) -> tuple[bytes, ScannedRecords, list[int]] | None:
        """The records with the numbers of those that stay, None if none does."""
        if not header.records_count or self._is_superseded(header):
            return None
        body = decompress(header.compression, data[HEADER_BYTES:])
        scanned = scan(body, header.records_count)
        numbers: list[int] = list(range(header.records_count))
        if not header.is_control:
            numbers = self._newest(header, scanned)
            if scanned.tombstones and self._is_over(header):
                gone = {
                    number
                    for number in scanned.tombstones
                    if header.base_offset + scanned.offset_deltas[number]
                    <= self.offsets.latest_offset
                }
                numbers = [number for number in numbers if number not in gone]
        return (body, scanned, numbers) if numbers else None

    def _is_superseded(self, header: BatchHeader) -> bool:
        """Whether every record has a newer one, told without a look at them. What belongs to
        transactions may not be in the map."""
        return not header.attributes & OF_TRANSACTIONS and self.offsets.supersedes(
            header.base_offset, header.last_offset
        )

    def _newest(self, header: BatchHeader, scanned: ScannedRecords) -> list[int]:
        """The records whose key is not known with a later offset; without a key none stays."""
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

    def _written(
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
