"""Messages of magic 0 and 1 from old producers, as one batch of magic 2 (`LogValidator`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from urteil.broker.log.config import LogConfig
from urteil.broker.log.record_errors import Look, refuse_records
from urteil.broker.log.validate import Refused, too_large
from urteil.broker.wire import legacy
from urteil.broker.wire.batch_header import NO_TIMESTAMP
from urteil.broker.wire.batches import (
    Compression,
    Record,
    Unforeseen,
    build_batch,
    set_timestamps,
)
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.legacy import MisshapenMessage
from urteil.broker.wire.records import RecordFields

Entries = Sequence[tuple[int, memoryview]]


def admit_messages(entries: Entries, config: LogConfig, now_ms: int) -> memoryview | Refused:
    """The batch that stands for all messages, in the topic's codec, with its kind of time.

    All are of one magic and have been checked; a compressed one must come alone (INVALID_RECORD).
    Raises CorruptBatch, UnsupportedCompression.
    """
    codecs = {legacy.codec_of(entry) for _, entry in entries} - {Compression.NONE}
    if max(codecs, default=Compression.NONE) > Compression.ZSTD:
        return Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression codec {max(codecs)}")
    if codecs and len(entries) > 1:
        return Refused(ErrorCode.INVALID_RECORD, "A compressed message is not the only one")
    try:
        records, looks = _read(entries)
    except MisshapenMessage as error:
        return Refused(ErrorCode.INVALID_RECORD, str(error))
    refused = refuse_records(looks, config, now_ms)
    if refused:
        return refused
    return _batch(records, config, now_ms, next(iter(codecs), Compression.NONE))


def _read(entries: Entries) -> tuple[list[Record], list[Look]]:
    records: list[Record] = []
    looks: list[Look] = []
    for _, entry in entries:
        of_broker = legacy.has_broker_time(entry)
        for record in legacy.iter_legacy(entry):
            records.append(record)
            looks.append((record.timestamp_ms, record.key is not None, of_broker))
    return records, looks


def _batch(
    records: list[Record], config: LogConfig, now_ms: int, sent_in: int
) -> memoryview | Refused:
    codec = config.codec_for(sent_in)
    batch = written_anew(
        [(one.key, one.value, (), one.timestamp_ms) for one in records],
        compression=Compression(codec),
        level=config.level_of(codec),
    )
    if config.log_append_time:
        set_timestamps(batch, now_ms, of_broker=True)
    if len(batch) > config.max_message_bytes:
        return too_large(len(batch), config)
    return memoryview(batch)


def written_anew(records: Sequence[RecordFields], **more: Any) -> bytearray:
    """A batch that the broker writes; Unforeseen for times that none can have
    (`MemoryRecordsBuilder`)."""
    oldest = min(time_ms for *_, time_ms in records)
    if oldest < NO_TIMESTAMP:
        raise Unforeseen(f"a record of the time {oldest}")
    return bytearray(build_batch(records, **more))
