"""Checks of a batch by its header and checksum (`UnifiedLog`, `LogValidator`)."""

from __future__ import annotations

from typing import NamedTuple

from urteil.broker.log.log_config import LogConfig
from urteil.broker.wire import old_messages
from urteil.broker.wire.batches import (
    NEWEST_MAGIC,
    BatchHeader,
    is_crc_valid,
    iter_stored,
    parse_header,
)
from urteil.broker.wire.compression import Compression
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.primitives import CorruptBatch

Batches = list[tuple[BatchHeader, memoryview]]
RecordError = tuple[int, str]
"""(index of a record in its batch, reason for its rejection)."""


class Rejection(NamedTuple):
    """Why an append was rejected; `records` lists the invalid records, if they are the reason."""

    error: ErrorCode
    message: str
    records: tuple[RecordError, ...] = ()


def split_fetched_batches(data: memoryview) -> Batches | Rejection:
    """The complete batches of a fetched buffer; an incomplete last one is ignored."""
    try:
        batches = list(iter_stored(data, allow_partial_tail=True))
    except CorruptBatch as error:
        return Rejection(ErrorCode.CORRUPT_MESSAGE, str(error))
    for header, batch in batches:
        if header.last_offset_delta < 0 or not is_crc_valid(batch):
            return Rejection(
                ErrorCode.CORRUPT_MESSAGE, f"Record batch at {header.base_offset} is corrupt"
            )
    return batches


def check_batch(
    magic: int, entry: memoryview, config: LogConfig, *, from_client: bool
) -> Rejection | None:
    """Check size, base offset and checksum of a batch or old message; None if it is valid.

    Raises CorruptBatch for an old message with a wrong checksum.
    """
    if magic < NEWEST_MAGIC:
        if len(entry) > config.max_message_bytes:
            return reject_oversized(len(entry), config)
        old_messages.check_crc(entry)
        return None
    header = parse_header(entry)
    if from_client and header.base_offset != 0:
        return Rejection(
            ErrorCode.INVALID_RECORD,
            f"The baseOffset of the record batch should be 0, but it is {header.base_offset}",
        )
    if header.size > config.max_message_bytes:
        return reject_oversized(header.size, config)
    if not is_crc_valid(entry):
        return Rejection(
            ErrorCode.CORRUPT_MESSAGE,
            f"Record is corrupt (stored crc = {header.crc}, producer id {header.producer_id})",
        )
    return None


def reject_oversized(size: int, config: LogConfig) -> Rejection:
    return Rejection(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch size is {size} bytes which exceeds the maximum configured value of "
        f"{config.max_message_bytes}",
    )


def check_client_header(header: BatchHeader) -> Rejection | None:
    """Check a header by the rules for producers; None if it is valid."""
    if header.last_offset_delta < 0 or header.records_count <= 0:
        return Rejection(
            ErrorCode.INVALID_RECORD,
            f"Invalid reported count for record batch: {header.records_count} records, "
            f"last offset delta {header.last_offset_delta}",
        )
    if header.last_offset_delta + 1 != header.records_count:
        return Rejection(
            ErrorCode.INVALID_RECORD,
            f"Inconsistent batch offset range [0, {header.last_offset_delta}] and count of "
            f"records {header.records_count}",
        )
    if header.compression > Compression.ZSTD:
        # no reader knows the codec; Apache Kafka answers UNKNOWN_SERVER_ERROR
        return Rejection(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression codec {header.compression}"
        )
    if header.is_control:
        return Rejection(
            ErrorCode.INVALID_RECORD, "Clients are not allowed to write control records"
        )
    if header.has_producer_id and header.base_sequence < 0:
        return Rejection(
            ErrorCode.INVALID_RECORD,
            f"Invalid sequence number {header.base_sequence} in record batch with producerId "
            f"{header.producer_id}",
        )
    return None
