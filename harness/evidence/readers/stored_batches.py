"""The batches of a segment file in every format of Kafka: magic 2, and messages of magic 0 and 1.

This module parses headers, kafka-python the records of magic 2, `old_messages` older messages. A
message of magic 0 or 1 counts as a batch with all messages compressed in it; it has no leader epoch
(-1) and no producer. Source: Kafka's documentation ("Record Batch", "Control Batches").
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crc32c import crc32c
from kafka.errors import KafkaError
from kafka.record.default_records import DefaultRecordBatch
from snappy import UncompressError
from zstandard import ZstdError

from urteil.harness.evidence.readers import old_messages

_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_AT_END, _MAGIC_AT = 12, 16
_CRC_FROM = 21
_SMALLEST = (*old_messages.SMALLEST, _HEADER.size)
_NEWEST = 2
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_SEQUENCES = 1 << 31
"""Sequences wrap to 0 behind the last one, also within a batch."""
_UNREADABLE = (
    *(KafkaError, struct.error, ValueError, OSError),
    *(EOFError, zlib.error, UncompressError, RuntimeError, ZstdError),  # of gzip, snappy, lz4, zstd
)


@dataclass(slots=True, kw_only=True)
class StoredBatch:
    """One batch. `columns` are those of `replicas` that its records share; `error` is the reason
    for which its records cannot be read."""

    size: int
    base: int
    last: int
    max_timestamp_ms: int
    crc_holds: bool
    columns: dict[str, Any]
    base_sequence: int = -1
    is_control: bool = False
    records: list[Any] = field(default_factory=list)
    error: str | None = None

    def sequence(self, offset: int) -> int | None:
        """The sequence of the record at this offset.

        Kafka's group coordinators write 0 without a producer, which counts as none.
        """
        if self.base_sequence < 0 or self.columns["producer_id"] is None:
            return None
        return (self.base_sequence + offset - self.base) % _SEQUENCES


def read_batches(segment: Path) -> Iterator[StoredBatch | str]:
    """Batches in file order. A last item describes a tail that is not a batch."""
    return parse_batches(segment.read_bytes())


def parse_batches(content: bytes) -> Iterator[StoredBatch | str]:
    """As `read_batches`, of a segment's content."""
    data = memoryview(content)
    at = 0
    while at < len(data):
        if len(data) - at < min(_SMALLEST):
            yield f"{len(data) - at} bytes at {at} are not a batch"
            return
        length, magic = int.from_bytes(data[at + 8 : at + 12], "big", signed=True), data[at + 16]
        size = length + _LENGTH_AT_END
        if magic > _NEWEST or size < _SMALLEST[magic]:
            yield f"no batch at {at} (length {length}, magic {magic})"
            return
        if at + size > len(data):
            yield f"the batch at {at} is cut ({len(data) - at} of {size} bytes)"
            return
        batch = data[at : at + size]
        yield _batch(batch) if magic == _NEWEST else _old_batch(batch)
        at += size


def _batch(data: memoryview) -> StoredBatch:
    header = _HEADER.unpack_from(data)
    attributes, producer_id = header[5], header[9]
    batch = StoredBatch(
        size=len(data),
        base=header[0],
        last=header[0] + header[6],
        max_timestamp_ms=header[8],
        crc_holds=crc32c(data[_CRC_FROM:]) == header[4],
        base_sequence=header[11],
        is_control=bool(attributes & _CONTROL),
        columns={
            "batch_base": header[0],
            "batch_bytes": len(data),
            "batch_crc": header[4],
            "leader_epoch": header[2],
            "producer_id": producer_id if producer_id >= 0 else None,
            "producer_epoch": header[10] if producer_id >= 0 else None,
            "transactional": bool(attributes & _TRANSACTIONAL),
        },
    )
    try:
        batch.records = list(DefaultRecordBatch(data))
    except _UNREADABLE as error:
        batch.error = str(error) or type(error).__name__
    return batch


def _old_batch(data: memoryview) -> StoredBatch:
    offset = int.from_bytes(data[:8], "big", signed=True)
    batch = StoredBatch(
        size=len(data),
        base=offset,
        last=offset,
        max_timestamp_ms=old_messages.time_of(data),
        crc_holds=old_messages.crc_holds(data),
        columns={
            "batch_base": offset,
            "batch_bytes": len(data),
            "batch_crc": int.from_bytes(data[_LENGTH_AT_END:_MAGIC_AT], "big"),
            "leader_epoch": old_messages.NO_EPOCH,
            "producer_id": None,
            "producer_epoch": None,
            "transactional": False,
        },
    )
    try:
        batch.records = list(old_messages.records(data))
        batch.base = batch.columns["batch_base"] = batch.records[0].offset
    except _UNREADABLE as error:
        batch.error = str(error) or type(error).__name__
    return batch
