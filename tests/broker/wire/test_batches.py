from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from urteil.broker.wire.batches import (
    Compression,
    CorruptBatch,
    UnsupportedCompression,
    build_batch,
    is_crc_valid,
    iter_batches,
    iter_records,
    parse_header,
    set_timestamps,
)

RECORDS: list[Any] = [
    (b"k", b"v" * 300, [("h", b"1"), ("n", None)], 1_700_000_000_000),
    (None, None, [], 1_700_000_000_009),
    (b"", b"", [], 1_699_999_999_999),
]

contents = st.none() | st.binary(max_size=20)
records_of_clients = st.lists(
    st.tuples(
        contents,
        contents,
        st.lists(st.tuples(st.text(max_size=4), contents), max_size=2),
        st.integers(0, 1 << 42),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60, deadline=None, database=None)
@given(records_of_clients, st.integers(0, 1 << 40), st.sampled_from(list(Compression)))
def test_batches_round_trip(records: Any, base_offset: int, codec: Compression) -> None:
    data = build_batch(records, base_offset=base_offset, leader_epoch=4, compression=codec)
    ((header, batch),) = iter_batches(data)
    assert is_crc_valid(batch)
    assert (header.size, header.compression, header.partition_leader_epoch) == (len(data), codec, 4)
    read = list(iter_records(batch))
    assert [(r.key, r.value, list(r.headers), r.timestamp_ms) for r in read] == records
    assert [r.offset for r in read] == list(range(base_offset, header.next_offset))


@settings(max_examples=30, deadline=None, database=None)
@given(records_of_clients, st.integers(0, 1 << 40))
def test_batches_equal_those_of_kafka_python(records: Any, base_offset: int) -> None:
    builder = DefaultRecordBatchBuilder(2, 0, 0, 9, 1, 7, 1 << 20)
    for index, (key, value, headers, timestamp) in enumerate(records):
        builder.append(index, timestamp, key, value, headers)
    theirs = bytes(builder.build())
    ours = build_batch(records, producer_id=9, producer_epoch=1, base_sequence=7)
    assert ours[16:] == theirs[16:]
    batch = bytearray(ours)
    struct.pack_into(">q", batch, 0, base_offset)
    struct.pack_into(">i", batch, 12, 3)
    (read,) = MemoryRecords(bytes(batch))
    assert isinstance(read, DefaultRecordBatch)
    assert read.validate_crc()
    assert read.leader_epoch == 3
    assert [r.offset for r in read] == [base_offset + i for i in range(len(records))]


def test_header_fields_are_decoded() -> None:
    data = build_batch(
        RECORDS,
        base_offset=7,
        leader_epoch=2,
        producer_id=5,
        producer_epoch=1,
        base_sequence=(1 << 31) - 2,
        transactional=True,
        control=True,
        log_append_time=True,
    )
    header = parse_header(data)
    assert (header.last_offset, header.next_offset, header.records_count) == (9, 10, 3)
    assert header.last_sequence == 0
    assert header.is_transactional
    assert header.is_control
    assert header.has_producer_id
    assert header.timestamp_type == 1
    assert header.max_timestamp == 1_700_000_000_009
    assert {r.timestamp_ms for r in iter_records(data)} == {1_700_000_000_009}
    assert [r.sequence for r in iter_records(data)] == [(1 << 31) - 2, (1 << 31) - 1, 0]


def test_consecutive_batches_are_views_of_the_buffer() -> None:
    data = bytearray(build_batch(RECORDS) + build_batch(RECORDS[:1], base_offset=3))
    batches = list(iter_batches(data))
    assert [header.base_offset for header, _ in batches] == [0, 3]
    struct.pack_into(">q", batches[1][1], 0, 42)
    header = list(iter_batches(data))[1][0]
    assert header.base_offset == 42
    assert is_crc_valid(batches[1][1])


def test_setting_log_append_time_updates_the_checksum() -> None:
    batch = bytearray(build_batch(RECORDS, compression=Compression.GZIP))
    set_timestamps(batch, 123, of_broker=True)
    assert is_crc_valid(batch)
    assert {r.timestamp_ms for r in iter_records(batch)} == {123}
    assert parse_header(batch).compression == Compression.GZIP


def test_offset_gaps_are_preserved() -> None:
    data = build_batch(RECORDS, base_offset=10, offsets=[10, 15, 99])
    assert [r.offset for r in iter_records(data)] == [10, 15, 99]
    assert parse_header(data).last_offset == 99


@pytest.mark.parametrize("position", [17, 21, 30, 60, 61, 100, -1])
def test_flipped_bit_fails_the_checksum(position: int) -> None:
    data = bytearray(build_batch(RECORDS))
    data[position] ^= 4
    assert not is_crc_valid(data)


def test_truncated_batch_is_rejected_unless_a_partial_tail_is_allowed() -> None:
    data = build_batch(RECORDS)
    for length in range(1, len(data)):
        with pytest.raises(CorruptBatch):
            list(iter_batches(data[:length]))
        assert len(list(iter_batches(data + data[:length], allow_partial_tail=True))) == 1
        assert not is_crc_valid(data[:length])


@pytest.mark.parametrize("length", [-1, 0, 48, 1 << 20, (1 << 31) - 1])
def test_wrong_batch_lengths_are_rejected(length: int) -> None:
    data = bytearray(build_batch(RECORDS))
    struct.pack_into(">i", data, 8, length)
    with pytest.raises(CorruptBatch):
        list(iter_batches(data))


@pytest.mark.parametrize("codec", list(Compression))
def test_malformed_records_raise_only_corrupt_batch(codec: Compression) -> None:
    chance = random.Random(codec)
    original = build_batch(RECORDS, compression=codec)
    for _ in range(150):
        data = bytearray(original)
        data[chance.randrange(57, len(data))] = chance.randrange(256)
        try:
            list(iter_records(data))
        except CorruptBatch:
            continue


def test_unknown_codec_is_unsupported() -> None:
    data = bytearray(build_batch(RECORDS))
    data[22] |= 7
    with pytest.raises(UnsupportedCompression):
        list(iter_records(data))


def test_snappy_block_with_an_impossible_size_is_rejected() -> None:
    data = bytearray(build_batch(RECORDS, compression=Compression.SNAPPY))
    block = data.index(b"\x82SNAPPY\0") + 20
    data[block : block + 5] = b"\xff\xff\xff\xff\x07"
    with pytest.raises(CorruptBatch):
        list(iter_records(data))


def test_batch_without_records_is_rejected() -> None:
    with pytest.raises(ValueError, match="record"):
        build_batch([])
