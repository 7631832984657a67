"""Validation and conversion of a producer's batches by the leader."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from tests.broker.log.helpers import NOW_MS, batch, open_log
from urteil.broker.log.log_config import LogConfig
from urteil.broker.log.partition_log import AppendResult
from urteil.broker.wire.batches import (
    BatchHeader,
    Compression,
    Record,
    build_batch,
    is_crc_valid,
    iter_batches,
    iter_records,
    set_timestamps,
)
from urteil.broker.wire.errors import ErrorCode

CODECS = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
APPEND_TIME = LogConfig(message_timestamp_type="LogAppendTime")


def appended(
    folder: Path, data: Any, config: LogConfig | None = None
) -> tuple[AppendResult, list[tuple[BatchHeader, list[Record]]]]:
    """The result of an append, and the batches of the log after it."""
    log = open_log(folder, config=config)
    result = log.append_as_leader(memoryview(data), 5, NOW_MS)
    records = log.read(0, 1 << 20, upto=log.log_end_offset).records
    batches = list(iter_batches(b"".join(records)))
    assert all(is_crc_valid(part) for _, part in batches)
    log.close()
    return result, [(header, list(iter_records(part))) for header, part in batches]


@pytest.mark.parametrize("compression", CODECS)
@pytest.mark.parametrize("sent", Compression)
def test_batch_is_stored_in_the_topics_codec(
    tmp_path: Path, compression: str, sent: Compression
) -> None:
    data = batch([b"a" * 99, b"b"], compression=sent, producer=(7, 1, 3))
    result, ((header, records),) = appended(tmp_path, data, LogConfig(compression_type=compression))
    assert (result.base_offset, result.last_offset) == (0, 1)
    assert header.compression == CODECS[compression]
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 1, 3)
    assert header.partition_leader_epoch == 5
    assert [record.value for record in records] == [b"a" * 99, b"b"]


def test_batch_in_the_topics_codec_is_stored_unchanged(tmp_path: Path) -> None:
    data = batch([b"a"], compression=Compression.ZSTD)
    log = open_log(tmp_path, config=LogConfig(compression_type="zstd"))
    log.append_as_leader(data, 0, NOW_MS)
    assert bytes(log.read(0, 1 << 20, upto=1).records[0])[16:] == bytes(data[16:])
    log.close()


def test_topics_compression_level_is_used(tmp_path: Path) -> None:
    data = batch([b"%d" % (n * n) for n in range(3000)])
    sizes = []
    for level in (1, 9):
        folder = tmp_path / str(level)
        folder.mkdir()
        config = LogConfig(compression_type="gzip", compression_gzip_level=level)
        sizes.append(appended(folder, data, config)[1][0][0].size)
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("codec", ["producer", "gzip"])
def test_log_append_time_sets_the_timestamp_type(tmp_path: Path, codec: str) -> None:
    config = LogConfig(message_timestamp_type="LogAppendTime", compression_type=codec)
    result, ((header, records),) = appended(tmp_path, batch([b"a"], timestamp_ms=5), config)
    assert result.log_append_time_ms == NOW_MS
    assert (header.timestamp_type, header.base_timestamp, header.max_timestamp) == (1, 5, NOW_MS)
    assert records[0].timestamp_ms == NOW_MS


def test_timestamp_type_set_by_a_producer_is_cleared_or_rejected(tmp_path: Path) -> None:
    """It is cleared with CreateTime and rejected with LogAppendTime."""
    data = batch([b"a"], log_append_time=True)
    result, ((header, _),) = appended(tmp_path, data)
    assert (result.error, header.timestamp_type) == (ErrorCode.NONE, 0)
    refused = open_log(tmp_path, config=APPEND_TIME).append_as_leader(data, 0, NOW_MS)
    assert refused.error is ErrorCode.INVALID_TIMESTAMP
    assert [place for place, _ in refused.record_errors] == [0]


def test_every_invalid_record_is_reported(tmp_path: Path) -> None:
    config = LogConfig(cleanup_policy="compact", message_timestamp_before_max_ms=10)
    good, old = (b"k", b"v", (), NOW_MS), (b"k", b"v", (), NOW_MS - 11)
    keyless = (None, b"v", (), NOW_MS)
    for records, error, places in (
        ([good, keyless, good, keyless], ErrorCode.INVALID_RECORD, [1, 3]),
        ([good, old], ErrorCode.INVALID_TIMESTAMP, [1]),
        ([keyless, old, good], ErrorCode.INVALID_TIMESTAMP, [0, 1]),
    ):
        log = open_log(tmp_path, config=config)
        result = log.append_as_leader(memoryview(build_batch(records)), 0, NOW_MS)
        assert result.error is error
        assert [place for place, _ in result.record_errors] == places
        assert log.log_end_offset == 0
        log.close()


def test_batch_too_large_after_recompression_is_rejected(tmp_path: Path) -> None:
    data = batch([b"x" * 5000], compression=Compression.GZIP)
    config = LogConfig(compression_type="uncompressed", max_message_bytes=1000)
    assert len(data) < 1000
    assert appended(tmp_path, data, config)[0].error is ErrorCode.MESSAGE_TOO_LARGE


def test_duplicate_returns_its_first_append_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=APPEND_TIME)
    data = batch([b"a"], timestamp_ms=5, producer=(7, 0, 0))
    log.append_as_leader(data, 0, NOW_MS)
    again = log.append_as_leader(data, 0, NOW_MS + 99)
    assert again.duplicate
    assert (again.base_offset, again.log_append_time_ms) == (0, NOW_MS)


def test_incomplete_batch_is_ignored(tmp_path: Path) -> None:
    result, batches = appended(tmp_path, bytes(batch([b"a"])) + b"abcdef")
    assert (result.error, len(batches)) == (ErrorCode.NONE, 1)
    nothing = open_log(tmp_path).append_as_leader(memoryview(b""), 0, NOW_MS)
    assert (nothing.error, nothing.base_offset) == (ErrorCode.NONE, -1)


# -- messages of magic 0 and 1 ------------------------------------------------------------------


def messages(magic: int, codec: int, values: tuple[bytes, ...] = (b"a", b"b")) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 20)
    for offset, value in enumerate(values):
        builder.append(offset, NOW_MS + offset, b"k", value)
    return bytes(builder.build())


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
@pytest.mark.parametrize("kind", ["producer", "zstd"])
def test_old_messages_are_converted_into_one_batch(
    tmp_path: Path, magic: int, codec: int, kind: str
) -> None:
    result, ((header, records),) = appended(
        tmp_path, messages(magic, codec), LogConfig(compression_type=kind)
    )
    assert (result.base_offset, result.last_offset) == (0, 1)
    assert header.compression == (codec if kind == "producer" else Compression.ZSTD)
    assert (header.timestamp_type, header.producer_id) == (0, -1)
    assert [record.timestamp_ms for record in records] == [
        NOW_MS + n if magic else -1 for n in range(2)
    ]


def test_old_messages_get_the_brokers_timestamp(tmp_path: Path) -> None:
    result, ((header, _),) = appended(tmp_path, messages(1, 0), APPEND_TIME)
    assert result.log_append_time_ms == NOW_MS
    assert (header.timestamp_type, header.max_timestamp) == (1, NOW_MS)


def test_incompatible_old_messages_are_rejected(tmp_path: Path) -> None:
    for data in (messages(1, 1) + messages(1, 0), messages(0, 0) + messages(1, 0)):
        assert appended(tmp_path, data)[0].error is ErrorCode.INVALID_RECORD
    broken = bytearray(messages(1, 0))
    broken[-1] ^= 1
    assert appended(tmp_path, broken)[0].error is ErrorCode.CORRUPT_MESSAGE


def test_old_messages_without_keys_are_rejected_in_a_compacted_topic(tmp_path: Path) -> None:
    builder = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    builder.append(0, NOW_MS, b"k", b"v")
    builder.append(1, NOW_MS, None, b"v")
    result, _ = appended(tmp_path, builder.build(), LogConfig(cleanup_policy="compact"))
    assert result.error is ErrorCode.INVALID_RECORD
    assert [place for place, _ in result.record_errors] == [1]


def test_unknown_codec_setting_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"compression\.type"):
        LogConfig.from_properties({"compression.type": "rar"})


def test_magic_is_checked_first(tmp_path: Path) -> None:
    data = bytearray(batch([b"a"]))
    struct.pack_into(">b", data, 16, 3)
    assert appended(tmp_path, data)[0].error is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("place", "value"), [(64, 1), (64, 40), (65, 100), (65, 8), (67, 100), (67, 6)]
)
def test_malformed_records_are_rejected_in_a_compacted_topic(
    tmp_path: Path, place: int, value: int
) -> None:
    """A key or value that is longer than its record would end it for good, an offset that is not
    the record's would take later records of its key for older ones."""
    data = bytearray(batch([b"v"], key=b"k"))
    assert data[64:68] == bytes((0, 2, ord("k"), 2)), "offset, sizes of key and value, zigzag"
    data[place] = value
    set_timestamps(data, NOW_MS, of_broker=False)
    config = LogConfig(cleanup_policy="compact")
    result, batches = appended(tmp_path, data, config)
    assert result.error is ErrorCode.INVALID_RECORD
    assert batches == []
