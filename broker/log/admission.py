"""What becomes of an append's bytes before they get offsets (`LogValidator`).

Every record of a client is looked at, so that no log holds what nobody can read. In the normal case
the batch then goes to the log as it came: it is in the topic's codec and format. Only where the
topic demands more is it written anew.
"""

from __future__ import annotations

from urteil.broker.log import validate
from urteil.broker.log.config import LogConfig
from urteil.broker.log.record_errors import Look, refuse_records
from urteil.broker.log.upconversion import admit_messages, written_anew
from urteil.broker.log.validate import Parts, Refused
from urteil.broker.wire.batches import (
    NEWEST_MAGIC,
    UNREADABLE,
    BatchHeader,
    Compression,
    Unforeseen,
    UnsupportedCompression,
    is_sole_batch,
    iter_entries,
    iter_outlines,
    iter_records,
    parse_header,
    set_timestamps,
)
from urteil.broker.wire.errors import ErrorCode


def admit(
    data: memoryview, config: LogConfig, now_ms: int, *, from_client: bool
) -> Parts | Refused:
    """Batches of magic 2 as they are to be written, all but their offsets and epochs.

    Empty when `data` holds no whole batch. The caller's buffer is not changed.
    """
    try:
        entries = [(NEWEST_MAGIC, data)] if is_sole_batch(data) else list(iter_entries(data))
        for magic, entry in entries:
            refused = validate.refuse(magic, entry, config, from_client=from_client)
            if refused:
                return refused
        if len({magic for magic, _ in entries}) > 1:
            return Refused(ErrorCode.INVALID_RECORD, "Batches of several formats in one append")
        if entries and entries[0][0] < NEWEST_MAGIC:
            batch = admit_messages(entries, config, now_ms)
            return batch if isinstance(batch, Refused) else [(parse_header(batch), batch)]
        parts = [(parse_header(batch), batch) for _, batch in entries]
    except UNREADABLE as error:
        return _unread(error, ErrorCode.CORRUPT_MESSAGE)
    if from_client:
        for header, _ in parts:
            refused = validate.refuse_header(header)
            if refused:
                return refused
        if len(parts) > 1:
            return Refused(ErrorCode.INVALID_RECORD, "More than one record batch for a partition")
    return _admit_records(parts, config, now_ms, from_client=from_client)


def _admit_records(
    parts: Parts, config: LogConfig, now_ms: int, *, from_client: bool
) -> Parts | Refused:
    for index, (header, batch) in enumerate(parts):
        newest_ms = header.max_timestamp
        try:
            if from_client:
                looks = _looks(header, batch)
                refused = refuse_records(looks, config, now_ms)
                if refused:
                    return refused
                newest_ms = max(time_ms for time_ms, _, _ in looks)
            written = _written(header, batch, newest_ms, config, now_ms)
        except UNREADABLE as error:
            return _unread(error, ErrorCode.INVALID_RECORD)
        if written is not None:
            parts[index] = header, _ = parse_header(written), memoryview(written)
            if header.size > config.max_message_bytes:
                return validate.too_large(header.size, config)
    return parts


def _unread(error: Exception, corrupt: ErrorCode) -> Refused:
    """`corrupt` for what is wrong in itself."""
    if isinstance(error, UnsupportedCompression):
        return Refused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, str(error))
    is_unforeseen = isinstance(error, Unforeseen)
    return Refused(ErrorCode.UNKNOWN_SERVER_ERROR if is_unforeseen else corrupt, str(error))


def _looks(header: BatchHeader, batch: memoryview) -> list[Look]:
    marked = bool(header.timestamp_type)
    return [(one.timestamp_ms, one.has_key, marked) for one in iter_outlines(batch)]


def _written(
    header: BatchHeader, batch: memoryview, newest_ms: int, config: LogConfig, now_ms: int
) -> bytearray | None:
    """The batch anew, in the topic's codec, with its kind of time and the newest one in its header
    (old versions of Sarama say -1 of every batch); None if it is right."""
    codec = config.codec_for(header.compression)
    if codec == header.compression or (header.is_control and not header.compression):
        anew = None
    else:
        anew = _recompressed(header, batch, codec, config.level_of(codec))
    stamped = config.log_append_time
    if stamped or header.timestamp_type:
        anew = anew or bytearray(batch)
        set_timestamps(anew, now_ms if stamped else newest_ms, of_broker=stamped)
    elif anew is None and newest_ms != header.max_timestamp:
        anew = bytearray(batch)
        set_timestamps(anew, newest_ms, of_broker=False)
    return anew


def _recompressed(
    header: BatchHeader, batch: memoryview, codec: int, level: int | None
) -> bytearray:
    """Unforeseen for a producer that no batch can be written of (`MemoryRecordsBuilder`)."""
    if header.producer_epoch < 0 if header.has_producer_id else header.is_transactional:
        raise Unforeseen(f"producer {header.producer_id} has epoch {header.producer_epoch}")
    records = [(one.key, one.value, one.headers, one.timestamp_ms) for one in iter_records(batch)]
    return written_anew(
        records,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        compression=Compression(codec),
        transactional=header.is_transactional,
        level=level,
    )
