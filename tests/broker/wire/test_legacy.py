from __future__ import annotations

from typing import Any

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from urteil.broker.wire.batches import (
    Compression,
    CorruptBatch,
    build_batch,
    convert_legacy,
    crc_ok,
    down_convert,
    iter_batches,
    iter_records,
    needs_conversion,
    parse_header,
)
from urteil.broker.wire.legacy import iter_legacy

RECORDS: list[Any] = [(b"k", b"v" * 200, 1000), (None, b"w", 1007), (b"", None, 1003)]


def message_set(magic: int, compression: int = 0) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, compression, 1 << 20)
    for offset, (key, value, timestamp) in enumerate(RECORDS):
        builder.append(offset, timestamp, key, value)
    return bytes(builder.build())


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_old_messages_become_one_batch(magic: int, codec: Compression) -> None:
    data = message_set(magic, codec)
    assert needs_conversion(data)
    converted = convert_legacy(data)
    ((header, batch),) = iter_batches(converted)
    assert not needs_conversion(converted)
    assert crc_ok(batch)
    assert header.compression == codec
    assert (header.base_offset, header.last_offset, header.producer_id) == (0, 2, -1)
    expected = [(k, v, ts if magic else -1) for k, v, ts in RECORDS]
    assert [(r.key, r.value, r.timestamp_ms) for r in iter_records(batch)] == expected


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_after_each_other_are_all_converted(magic: int) -> None:
    data = message_set(magic) + message_set(magic, Compression.GZIP)
    assert parse_header(convert_legacy(data)).records_count == 6


@pytest.mark.parametrize("magic", [0, 1])
def test_batches_become_old_messages_that_kafka_python_reads(magic: int) -> None:
    records = [(key, value, [("h", b"x")], timestamp) for key, value, timestamp in RECORDS]
    data = build_batch(records, base_offset=40, compression=Compression.GZIP)
    control = build_batch(records[:1], base_offset=43, control=True)
    old = down_convert([data, memoryview(control)], magic)
    read = [record for batch in MemoryRecords(old) for record in batch]
    assert all(record.validate_crc() for record in MemoryRecords(old))
    assert [(r.key, r.value) for r in read] == [(k, v) for k, v, _ in RECORDS]
    assert [r.offset for r in read] == [40, 41, 42]
    assert [r.timestamp for r in read] == ([1000, 1007, 1003] if magic else [None] * 3)
    assert [r.offset for r in iter_legacy(down_convert(data, magic, from_offset=41))] == [41, 42]


def test_offsets_inside_compressed_messages_of_magic_1_are_relative() -> None:
    data = bytearray(message_set(1, Compression.GZIP))
    data[0:8] = (1002).to_bytes(8, "big")
    assert [record.offset for record in iter_legacy(data)] == [1000, 1001, 1002]


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_a_flipped_bit_is_found(codec: Compression) -> None:
    whole = message_set(1, codec)
    first = 12 + int.from_bytes(whole[8:12], "big")
    for position in range(12, first):
        data = bytearray(whole)
        data[position] ^= 16
        with pytest.raises(CorruptBatch):
            convert_legacy(data)


def test_cut_messages_are_refused() -> None:
    whole = message_set(0)[: 12 + 14 + 1 + 200]
    for length in range(1, len(whole)):
        with pytest.raises(CorruptBatch):
            convert_legacy(whole[:length])


def test_an_empty_set_is_refused() -> None:
    assert not needs_conversion(b"")
    with pytest.raises(CorruptBatch):
        convert_legacy(b"")
