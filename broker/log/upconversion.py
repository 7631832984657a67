"""Conversion of messages of magic 0 and 1 into one batch of magic 2 (`LogValidator`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from urteil.broker.base.offload import BEYOND, STEP, Steps
from urteil.broker.log.batch_checks import Rejection, reject_oversized
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.record_errors import RecordErrors
from urteil.broker.wire import old_messages
from urteil.broker.wire.batch_header import (
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    BatchHeader,
    put_header,
)
from urteil.broker.wire.batches import NEWEST_MAGIC, Compression, KafkaServerError, set_timestamps
from urteil.broker.wire.compression import CHUNK_BYTES, compress_chunks
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.old_messages import MalformedMessage
from urteil.broker.wire.records import put_record

Entries = Sequence[tuple[int, memoryview]]

_AT_ONCE = 500
"""Records between two steps, and the most entries that are read on the event loop."""


def convert_messages(
    entries: Entries, config: LogConfig, now_ms: int
) -> Steps[memoryview | Rejection]:
    """Convert messages of one magic, already checked, into a batch in the topic's codec.

    A compressed message must be the only one (else INVALID_RECORD). Memory holds the messages and
    the batch, at most 100 MiB each. Raises CorruptBatch, UnsupportedCompression.
    """
    codecs = {old_messages.codec_of(entry) for _, entry in entries} - {Compression.NONE}
    if max(codecs, default=Compression.NONE) > Compression.ZSTD:
        return Rejection(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown compression codec {max(codecs)}")
    if codecs and len(entries) > 1:
        return Rejection(ErrorCode.INVALID_RECORD, "A compressed message is not the only one")
    if codecs or len(entries) > _AT_ONCE:
        yield BEYOND
    conversion = _Conversion(config, now_ms)
    try:
        yield from conversion.read(entries)
    except MalformedMessage as error:
        return Rejection(ErrorCode.INVALID_RECORD, str(error))
    return (yield from conversion.build(next(iter(codecs), Compression.NONE)))


class _Conversion:
    """The records of one append, encoded as in a batch of magic 2."""

    def __init__(self, config: LogConfig, now_ms: int) -> None:
        self._config = config
        self._now_ms = now_ms
        self._errors = RecordErrors(config, now_ms)
        self._records = bytearray()
        self._count = 0
        self._first_ms = NO_TIMESTAMP

    def read(self, entries: Entries) -> Steps[None]:
        for _, entry in entries:
            of_broker = old_messages.has_broker_time(entry)
            for message in old_messages.iter_old_messages(entry):
                time_ms = message.timestamp_ms
                self._errors.check(
                    [time_ms], [message.key is not None], claims_broker_time=of_broker
                )
                if not self._count:
                    self._first_ms = time_ms
                fields = (message.key, message.value, (), time_ms)
                put_record(self._records, fields, self._count, time_ms - self._first_ms)
                self._count += 1
                if self._count % _AT_ONCE == 0:
                    yield STEP

    def build(self, sent_in: int) -> Steps[memoryview | Rejection]:
        """Build the batch. Raises KafkaServerError for a timestamp below -1."""
        config, errors = self._config, self._errors
        refused = errors.rejection()
        if refused:
            return refused
        if errors.oldest_ms < NO_TIMESTAMP:
            raise KafkaServerError(f"a record has the timestamp {errors.oldest_ms}")
        codec = config.codec_for(sent_in)
        batch = bytearray(HEADER_BYTES)
        for chunk in compress_chunks(codec, self._chunks(), config.level_of(codec)):
            batch += chunk
            if len(batch) > config.max_message_bytes:
                return reject_oversized(len(batch), config)
            yield STEP
        put_header(batch, self._header(codec))
        if config.log_append_time:
            set_timestamps(batch, self._now_ms, of_broker=True)
        return memoryview(batch)

    def _chunks(self) -> Iterator[bytes]:
        for start in range(0, len(self._records), CHUNK_BYTES):
            yield bytes(self._records[start : start + CHUNK_BYTES])

    def _header(self, codec: int) -> BatchHeader:
        return BatchHeader(
            base_offset=0,
            batch_length=-LOG_OVERHEAD_BYTES,  # `put_header` sets it
            partition_leader_epoch=-1,
            magic=NEWEST_MAGIC,
            crc=0,
            attributes=codec,
            last_offset_delta=self._count - 1,
            base_timestamp=self._first_ms,
            max_timestamp=self._errors.newest_ms,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=-1,
            base_sequence=NO_SEQUENCE,
            records_count=self._count,
        )
