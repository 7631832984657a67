"""What the leader demands of a batch by its header and checksum (`UnifiedLog`, `LogValidator`)."""

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
"""The place of a record in its batch, and what is wrong with it."""


class Rejection(NamedTuple):
    """Why nothing was appended; `records` names those that are at fault, where it is theirs."""

    error: ErrorCode
    message: str
    records: tuple[RecordError, ...] = ()


def split_fetched_batches(data: memoryview) -> Batches | Rejection:
    """The whole batches at the begin of a fetched buffer, whose last one may be cut."""
    try:
        parts = list(iter_stored(data, allow_partial_tail=True))
    except CorruptBatch as error:
        return Rejection(ErrorCode.CORRUPT_MESSAGE, str(error))
    for header, batch in parts:
        if header.last_offset_delta < 0 or not is_crc_valid(batch):
            return Rejection(
                ErrorCode.CORRUPT_MESSAGE, f"Record batch at {header.base_offset} is corrupt"
            )
    return parts


def check_batch(
    magic: int, entry: memoryview, config: LogConfig, *, from_client: bool
) -> Rejection | None:
    """Why the leader does not take a batch or old message, whatever is in it; None if it may.

    CorruptBatch for an old message with a wrong checksum.
    """
    if magic < NEWEST_MAGIC:
        if len(entry) > config.max_message_bytes:
            return reject_oversized(len(entry), config)
        old_messages.check(entry)
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
    """Why nobody but a broker may write a batch with that header; None if clients may."""
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
        # not to be read by anybody; Apache Kafka stumbles over it
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
