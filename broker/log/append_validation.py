"""Validation of the bytes of an append, before they get offsets (`LogValidator`).

Every record from a client is checked, so that a log never holds an unreadable record. A batch
that already has the topic's codec and timestamp type is appended unchanged; another is rewritten.
"""

from __future__ import annotations

from urteil.broker.base.offload import BEYOND, STEP, Steps
from urteil.broker.log import batch_checks
from urteil.broker.log.batch_checks import Batches, Rejection
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.record_errors import RecordErrors
from urteil.broker.log.upconversion import convert_messages
from urteil.broker.wire.batch_header import CONTROL, NO_TIMESTAMP, TRANSACTIONAL, put_header
from urteil.broker.wire.batches import (
    HEADER_BYTES,
    NEWEST_MAGIC,
    UNREADABLE,
    BatchHeader,
    KafkaServerError,
    UnsupportedCompression,
    is_sole_batch,
    iter_entries,
    iter_outlines,
    parse_header,
    set_timestamps,
)
from urteil.broker.wire.compression import compress_chunks, decompress_chunks
from urteil.broker.wire.errors import ErrorCode

_CHECKED_ON_LOOP_BYTES = 1 << 20
_COMPRESSED_ON_LOOP_BYTES = 4096


def validate_append(
    data: memoryview, config: LogConfig, now_ms: int, *, from_client: bool
) -> Steps[Batches | Rejection]:
    """Return the batches of magic 2 to write, still without offsets and leader epochs.

    Empty when `data` holds no complete batch. The caller's buffer is not changed. The steps need no
    access to the log and may run on another thread.
    """
    if len(data) > _CHECKED_ON_LOOP_BYTES:
        yield BEYOND
    try:
        entries = [(NEWEST_MAGIC, data)] if is_sole_batch(data) else list(iter_entries(data))
        for magic, entry in entries:
            refused = batch_checks.check_batch(magic, entry, config, from_client=from_client)
            if refused:
                return refused
        if len({magic for magic, _ in entries}) > 1:
            return Rejection(ErrorCode.INVALID_RECORD, "Batches of several formats in one append")
        if entries and entries[0][0] < NEWEST_MAGIC:
            batch = yield from convert_messages(entries, config, now_ms)
            return batch if isinstance(batch, Rejection) else [(parse_header(batch), batch)]
        batches = [(parse_header(batch), batch) for _, batch in entries]
    except UNREADABLE as error:
        return _rejection_of(error, ErrorCode.CORRUPT_MESSAGE)
    if from_client:
        for header, _ in batches:
            refused = batch_checks.check_client_header(header)
            if refused:
                return refused
        if len(batches) > 1:
            return Rejection(ErrorCode.INVALID_RECORD, "More than one record batch for a partition")
    for index, (header, batch) in enumerate(batches):
        try:
            admitted = yield from _validate_batch(
                header, batch, config, now_ms, from_client=from_client
            )
        except UNREADABLE as error:
            return _rejection_of(error, ErrorCode.INVALID_RECORD)
        if isinstance(admitted, Rejection):
            return admitted
        batches[index] = admitted
    return batches


def _validate_batch(
    header: BatchHeader, batch: memoryview, config: LogConfig, now_ms: int, *, from_client: bool
) -> Steps[tuple[BatchHeader, memoryview] | Rejection]:
    """Return the batch in the topic's codec and timestamp type, with the largest record timestamp
    in its header (old versions of Sarama always send -1 there). A correct batch is returned as
    is."""
    newest_ms = header.max_timestamp
    errors = None
    if from_client:
        errors = RecordErrors(config, now_ms)
        claims_broker_time = bool(header.timestamp_type)
        for outlines in iter_outlines(batch):
            errors.check(
                [outline.timestamp_ms for outline in outlines],
                [outline.has_key for outline in outlines],
                claims_broker_time=claims_broker_time,
            )
            yield STEP
        refused = errors.rejection()
        if refused:
            return refused
        newest_ms = errors.newest_ms
    codec = config.codec_for(header.compression)
    rewritten: bytearray | None = None
    if codec != header.compression and not (header.is_control and not header.compression):
        if errors is not None and errors.oldest_ms < NO_TIMESTAMP:
            raise KafkaServerError(f"a record has the timestamp {errors.oldest_ms}")
        compressed = yield from recompress(header, batch, newest_ms, codec, config)
        if isinstance(compressed, Rejection):
            return compressed
        rewritten = compressed
    stamped = config.log_append_time
    if stamped or header.timestamp_type:
        rewritten = rewritten or bytearray(batch)
        set_timestamps(rewritten, now_ms if stamped else newest_ms, of_broker=stamped)
    elif rewritten is None and newest_ms != header.max_timestamp:
        rewritten = bytearray(batch)
        set_timestamps(rewritten, newest_ms, of_broker=False)
    if rewritten is None:
        return header, batch
    header = parse_header(rewritten)
    if header.size > config.max_message_bytes:
        return batch_checks.reject_oversized(header.size, config)
    return header, memoryview(rewritten)


def stamp_batch(
    header: BatchHeader, batch: memoryview, now_ms: int
) -> tuple[BatchHeader, memoryview]:
    """The batch with `now_ms` as its append time. A batch without that time is not changed, but
    copied."""
    if header.timestamp_type and header.max_timestamp == now_ms:
        return header, batch
    stamped = bytearray(batch)
    set_timestamps(stamped, now_ms, of_broker=True)
    return parse_header(stamped), memoryview(stamped)


def _rejection_of(error: Exception, corrupt: ErrorCode) -> Rejection:
    """The rejection for an unreadable batch; `corrupt` is its error for damaged data."""
    if isinstance(error, UnsupportedCompression):
        return Rejection(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error))
    is_unforeseen = isinstance(error, KafkaServerError)
    return Rejection(ErrorCode.UNKNOWN_SERVER_ERROR if is_unforeseen else corrupt, str(error))


def recompress(
    header: BatchHeader, batch: memoryview, newest_ms: int, codec: int, config: LogConfig
) -> Steps[bytearray | Rejection]:
    """Write the records of a batch in another codec, chunk by chunk.

    Raises KafkaServerError for producer fields that `MemoryRecordsBuilder` rejects.
    """
    if header.producer_epoch < 0 if header.has_producer_id else header.is_transactional:
        raise KafkaServerError(f"producer {header.producer_id} has epoch {header.producer_epoch}")
    if header.compression or len(batch) > _COMPRESSED_ON_LOOP_BYTES:
        yield BEYOND
    rewritten = bytearray(HEADER_BYTES)
    records = decompress_chunks(header.compression, batch[HEADER_BYTES:])
    for chunk in compress_chunks(codec, records, config.level_of(codec)):
        rewritten += chunk
        if len(rewritten) > config.max_message_bytes:
            return batch_checks.reject_oversized(len(rewritten), config)
        yield STEP
    kept = header.attributes & (TRANSACTIONAL | CONTROL)
    put_header(rewritten, header._replace(attributes=kept | codec, max_timestamp=newest_ms))
    return rewritten
