from __future__ import annotations

from typing import Any

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from urteil.broker.wire import lz4_frame
from urteil.broker.wire.batches import (
    Compression,
    CorruptBatch,
    UnsupportedCompression,
    build_batch,
    down_convert,
    iter_entries,
)
from urteil.broker.wire.compression import compress
from urteil.broker.wire.old_messages import iter_old_messages

RECORDS: list[Any] = [(b"k", b"v" * 200, 1000), (None, b"w", 1007), (b"", None, 1003)]
NEW = [(key, value, [("h", b"x")], timestamp) for key, value, timestamp in RECORDS]


def message_set(magic: int, compression: int = 0) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, compression, 1 << 20)
    for offset, (key, value, timestamp) in enumerate(RECORDS):
        builder.append(offset, timestamp, key, value)
    return bytes(builder.build())


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_old_messages_of_kafka_python_are_decoded(magic: int, codec: Compression) -> None:
    expected = [(k, v, ts if magic else -1) for k, v, ts in RECORDS]
    read = list(iter_old_messages(message_set(magic, codec)))
    assert [(r.key, r.value, r.timestamp_ms) for r in read] == expected


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_down_converted_batches_are_readable_by_kafka_python(
    magic: int, codec: Compression
) -> None:
    data = build_batch(NEW, base_offset=40, compression=codec)
    data += build_batch(NEW[:1], base_offset=43, control=True)
    old = down_convert(data, magic)
    read = [record for batch in MemoryRecords(old) for record in batch]
    assert all(record.validate_crc() for record in MemoryRecords(old))
    assert [(r.key, r.value) for r in read] == [(k, v) for k, v, _ in RECORDS]
    assert [r.offset for r in read] == [40, 41, 42]
    assert [r.timestamp for r in read] == ([1000, 1007, 1003] if magic else [None] * 3)


@pytest.mark.parametrize("codec", [c for c in Compression if c is not Compression.ZSTD])
@pytest.mark.parametrize("magic", [0, 1])
def test_down_converted_messages_keep_their_codec(codec: Compression, magic: int) -> None:
    old = down_convert(build_batch(NEW, base_offset=40, compression=codec), magic)
    ((_, first), *_) = iter_entries(old)
    assert first[17] & 7 == codec
    assert [(r.offset, r.key, r.value) for r in iter_old_messages(old)] == [
        (40 + n, key, value) for n, (key, value, _) in enumerate(RECORDS)
    ]


def test_down_conversion_from_an_offset_skips_only_uncompressed_records() -> None:
    for codec, first in ((Compression.NONE, 41), (Compression.GZIP, 40)):
        data = build_batch(NEW, base_offset=40, compression=codec)
        assert next(iter_old_messages(down_convert(data, 1, from_offset=41))).offset == first


def test_down_converted_messages_are_not_longer_than_the_batches() -> None:
    small = build_batch([(b"k", b"v", [], 1)] * 50)
    first = down_convert(small, 1)
    assert len(first) > len(small)  # 50 heads instead of one, and yet whole
    assert len(list(iter_old_messages(first))) == 50
    assert down_convert(small + small, 1)[: len(first)] == first
    assert len(down_convert(small + small, 1)) == max(len(first), 2 * len(small))


def test_zstd_is_not_converted_for_old_readers() -> None:
    good = build_batch(NEW, base_offset=0)
    bad = build_batch(NEW, base_offset=3, compression=Compression.ZSTD)
    with pytest.raises(UnsupportedCompression):
        down_convert(bad, 1)
    assert [r.offset for r in iter_old_messages(down_convert(good + bad, 1))] == [0, 1, 2]


def test_control_batches_alone_become_an_incomplete_message() -> None:
    control = build_batch(NEW[:1], control=True)
    assert list(iter_entries(down_convert(control, 0))) == []
    assert down_convert(control, 0)[:8] == b"\xff" * 8
    assert down_convert(b"", 0) == b""


def test_offsets_inside_compressed_messages_of_magic_1_are_relative() -> None:
    data = bytearray(message_set(1, Compression.GZIP))
    data[0:8] = (1002).to_bytes(8, "big")
    assert [record.offset for record in iter_old_messages(data)] == [1000, 1001, 1002]


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_flipped_bit_in_an_old_message_is_detected(codec: Compression) -> None:
    original = message_set(1, codec)
    first = 12 + int.from_bytes(original[8:12], "big")
    for position in range(12, first):
        data = bytearray(original)
        data[position] ^= 16
        with pytest.raises(CorruptBatch):
            list(iter_old_messages(data))


def test_truncated_old_messages_are_rejected() -> None:
    original = message_set(0)[: 12 + 14 + 1 + 200]
    for length in range(1, len(original)):
        with pytest.raises(CorruptBatch):
            list(iter_old_messages(original[:length]))


def test_lz4_header_checksum_of_magic_0_is_converted() -> None:
    frame = compress(Compression.LZ4, b"value" * 100)
    assert lz4_frame.set_standard_checksum(frame) == frame
    wrong = lz4_frame.set_kafka_checksum(frame)
    assert wrong != frame
    assert lz4_frame.set_standard_checksum(wrong) == frame
