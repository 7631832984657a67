"""What becomes of an append's bytes before they get offsets (`LogValidator`).

Every record of a client is looked at, so that no log holds what nobody can read. In the normal case
the batch then goes to the log as it came: it is in the topic's codec and format. Only where the
topic demands more is it written anew.
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
from urteil.broker.wire.compression import packed, unpacked
from urteil.broker.wire.errors import ErrorCode

_LOOKED_AT_AT_ONCE_BYTES = 1 << 20
_PACKED_AT_ONCE_BYTES = 4096


def validate_append(
    data: memoryview, config: LogConfig, now_ms: int, *, from_client: bool
) -> Steps[Batches | Rejection]:
    """Batches of magic 2 as they are to be written, all but their offsets and epochs.

    Empty when `data` holds no whole batch. The caller's buffer is not changed. Nothing here looks
    at the log: another thread may do the steps.
    """
    if len(data) > _LOOKED_AT_AT_ONCE_BYTES:
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
        parts = [(parse_header(batch), batch) for _, batch in entries]
    except UNREADABLE as error:
        return _rejection_of(error, ErrorCode.CORRUPT_MESSAGE)
    if from_client:
        for header, _ in parts:
            refused = batch_checks.check_client_header(header)
            if refused:
                return refused
        if len(parts) > 1:
            return Rejection(ErrorCode.INVALID_RECORD, "More than one record batch for a partition")
    for index, (header, batch) in enumerate(parts):
        try:
            admitted = yield from _validate_batch(
                header, batch, config, now_ms, from_client=from_client
            )
        except UNREADABLE as error:
            return _rejection_of(error, ErrorCode.INVALID_RECORD)
        if isinstance(admitted, Rejection):
            return admitted
        parts[index] = admitted
    return parts


def _validate_batch(
    header: BatchHeader, batch: memoryview, config: LogConfig, now_ms: int, *, from_client: bool
) -> Steps[tuple[BatchHeader, memoryview] | Rejection]:
    """The batch in the topic's codec, with its kind of time and the newest one in its header (old
    versions of Sarama say -1 of every batch): as it came if all that is right."""
    newest_ms = header.max_timestamp
    errors = None
    if from_client:
        errors = RecordErrors(config, now_ms)
        claims_broker_time = bool(header.timestamp_type)
        for found in iter_outlines(batch):
            errors.look(
                [one.timestamp_ms for one in found],
                [one.has_key for one in found],
                claims_broker_time=claims_broker_time,
            )
            yield STEP
        refused = errors.refused()
        if refused:
            return refused
        newest_ms = errors.newest_ms
    codec = config.codec_for(header.compression)
    anew: bytearray | None = None
    if codec != header.compression and not (header.is_control and not header.compression):
        if errors is not None and errors.oldest_ms < NO_TIMESTAMP:
            raise KafkaServerError(f"a record of the time {errors.oldest_ms}")
        written = yield from recompress(header, batch, newest_ms, codec, config)
        if isinstance(written, Rejection):
            return written
        anew = written
    stamped = config.log_append_time
    if stamped or header.timestamp_type:
        anew = anew or bytearray(batch)
        set_timestamps(anew, now_ms if stamped else newest_ms, of_broker=stamped)
    elif anew is None and newest_ms != header.max_timestamp:
        anew = bytearray(batch)
        set_timestamps(anew, newest_ms, of_broker=False)
    if anew is None:
        return header, batch
    header = parse_header(anew)
    if header.size > config.max_message_bytes:
        return batch_checks.reject_oversized(header.size, config)
    return header, memoryview(anew)


def _rejection_of(error: Exception, corrupt: ErrorCode) -> Rejection:
    """`corrupt` for what is wrong in itself."""
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
    if header.compression or len(batch) > _PACKED_AT_ONCE_BYTES:
        yield BEYOND
    anew = bytearray(HEADER_BYTES)
    records = unpacked(header.compression, batch[HEADER_BYTES:])
    for chunk in packed(codec, records, config.level_of(codec)):
        anew += chunk
        if len(anew) > config.max_message_bytes:
            return batch_checks.reject_oversized(len(anew), config)
        yield STEP
    kept = header.attributes & (TRANSACTIONAL | CONTROL)
    put_header(anew, header._replace(attributes=kept | codec, max_timestamp=newest_ms))
    return anew
