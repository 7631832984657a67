"""What the leader demands of appended batches (`UnifiedLog.analyzeAndValidateRecords`,
`LogValidator`), from headers and checksums; records are looked at in compacted topics alone,
where each needs a key.
"""

from __future__ import annotations

from urteil.broker.log.config import LogConfig
from urteil.broker.log.producers import Refusal
from urteil.broker.wire.batches import BatchHeader, crc_ok, iter_batches, iter_records
from urteil.broker.wire.compression import Compression, UnsupportedCompression
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.primitives import CorruptBatch

Parts = list[tuple[BatchHeader, memoryview]]


def split(data: memoryview) -> Parts | Refusal:
    """The whole batches that fill `data`; CORRUPT_MESSAGE for anything else."""
    try:
        parts = list(iter_batches(data))
    except CorruptBatch as error:
        return ErrorCode.CORRUPT_MESSAGE, str(error)
    if not parts:
        return ErrorCode.INVALID_RECORD, "No record batch to append"
    return parts


def split_fetched(data: memoryview) -> Parts | Refusal:
    """The whole batches at the begin of a fetched buffer, whose last one may be cut."""
    try:
        parts = list(iter_batches(data, allow_partial_tail=True))
    except CorruptBatch as error:
        return ErrorCode.CORRUPT_MESSAGE, str(error)
    for header, batch in parts:
        if header.last_offset_delta < 0 or not crc_ok(batch):
            return ErrorCode.CORRUPT_MESSAGE, f"Record batch at {header.base_offset} is corrupt"
    return parts


def refuse(
    header: BatchHeader, batch: memoryview, config: LogConfig, now_ms: int, *, from_client: bool
) -> Refusal | None:
    """Why the leader does not take a batch, None if it does."""
    if from_client and header.base_offset != 0:
        return ErrorCode.INVALID_RECORD, (
            f"The baseOffset of the record batch should be 0, but it is {header.base_offset}"
        )
    if header.size > config.max_message_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE, (
            f"The record batch size is {header.size} bytes which exceeds the maximum "
            f"configured value of {config.max_message_bytes}"
        )
    if not crc_ok(batch):
        return ErrorCode.CORRUPT_MESSAGE, (
            f"Record is corrupt (stored crc = {header.crc}, producer id {header.producer_id})"
        )
    if not from_client:
        return None
    return (
        _refuse_header(header)
        or _refuse_time(header, config, now_ms)
        or (_refuse_keys(batch) if config.compacts else None)
    )


def _refuse_header(header: BatchHeader) -> Refusal | None:
    if header.last_offset_delta < 0 or header.records_count <= 0:
        return ErrorCode.INVALID_RECORD, (
            f"Invalid reported count for record batch: {header.records_count} records, "
            f"last offset delta {header.last_offset_delta}"
        )
    if header.last_offset_delta + 1 != header.records_count:
        return ErrorCode.INVALID_RECORD, (
            f"Inconsistent batch offset range [0, {header.last_offset_delta}] and count of "
            f"records {header.records_count}"
        )
    if header.compression > Compression.ZSTD:
        # not to be read by anybody; Apache Kafka stumbles over it
        return ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression codec {header.compression}"
    if header.is_control:
        return ErrorCode.INVALID_RECORD, "Clients are not allowed to write control records"
    if header.has_producer_id and header.base_sequence < 0:
        return ErrorCode.INVALID_RECORD, (
            f"Invalid sequence number {header.base_sequence} in record batch with producerId "
            f"{header.producer_id}"
        )
    return None


def _refuse_time(header: BatchHeader, config: LogConfig, now_ms: int) -> Refusal | None:
    if header.timestamp_type == 1:
        return ErrorCode.INVALID_TIMESTAMP, "Producer should not set timestamp type LogAppendTime"
    if config.log_append_time or header.max_timestamp < 0:
        return None
    too_old = now_ms - header.base_timestamp > config.timestamp_before_ms
    if too_old or header.max_timestamp - now_ms > config.timestamp_after_ms:
        return ErrorCode.INVALID_TIMESTAMP, (
            f"Timestamps {header.base_timestamp} to {header.max_timestamp} are out of range"
        )
    return None


def _refuse_keys(batch: memoryview) -> Refusal | None:
    try:
        if all(record.key is not None for record in iter_records(batch)):
            return None
    except UnsupportedCompression:
        return None
    except CorruptBatch as error:
        return ErrorCode.INVALID_RECORD, str(error)
    return ErrorCode.INVALID_RECORD, "Compacted topic cannot accept message without key"
