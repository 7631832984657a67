from __future__ import annotations

import random
import struct
import tracemalloc
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.broker.wire.strategies import ALL_MESSAGES, encoded, messages, project, versions
from urteil.broker.wire.messages import (
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    MetadataRequest,
    ProduceRequest,
    SyncGroupRequest,
)
from urteil.broker.wire.primitives import WireError
from urteil.broker.wire.schema import Message

QUICK = settings(
    max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)

by_message = pytest.mark.parametrize("cls", ALL_MESSAGES, ids=lambda cls: cls.__name__)


@by_message
def test_messages_round_trip_at_every_version(cls: type[Message]) -> None:
    @QUICK
    @given(messages(cls))
    def check(full: Any) -> None:
        for version in versions(cls):
            message = project(full, version)
            data = encoded(message, version)
            assert cls.decode(version, data) == (message, len(data))
            shifted = memoryview(b"??" + data + b"tail")
            assert cls.decode(version, shifted, 2) == (message, len(data) + 2)

    check()


@by_message
def test_truncated_message_is_rejected(cls: type[Message]) -> None:
    @settings(QUICK, max_examples=2)
    @given(messages(cls))
    def check(full: Any) -> None:
        for version in versions(cls):
            data = encoded(project(full, version), version)
            step = 1 + len(data) // 40
            for length in range(0, len(data), step):
                with pytest.raises(WireError):
                    cls.decode(version, data[:length])

    check()


@by_message
def test_garbage_raises_only_wire_errors(cls: type[Message]) -> None:
    chance = random.Random(7)
    for version in versions(cls):
        for _ in range(20):
            data = chance.randbytes(chance.randrange(60))
            try:
                message, pos = cls.decode(version, data)
            except WireError:
                continue
            assert pos <= len(data)
            assert isinstance(message, cls)


def test_version_out_of_range_is_rejected() -> None:
    with pytest.raises(WireError):
        ProduceRequest.decode(12, b"")
    with pytest.raises(WireError):
        ProduceRequest().encode(-1)


@pytest.mark.parametrize("version", [0, 11])
def test_impossible_length_allocates_nothing(version: int) -> None:
    head = b"\0" if version >= 9 else b""
    count = b"\xff\xff\xff\xff\x07" if version >= 9 else b"\x7f\xff\xff\xff"
    data = head + struct.pack(">hi", 1, 1000) + count + b"\0" * 64
    MetadataRequest.decode(0, b"\0\0\0\0")
    with pytest.raises(WireError):
        ProduceRequest.decode(version, data)
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            ProduceRequest.decode(version, data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 16
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [3, 1 << 20, (1 << 31) - 1])
def test_array_count_beyond_the_data_is_rejected(count: int) -> None:
    forgotten = FetchRequest.ForgottenTopic(topic="", partitions=(1, 2))
    data = encoded(FetchRequest(forgotten_topics_data=[forgotten]), 7)
    assert data.endswith(struct.pack(">iii", 2, 1, 2))
    with pytest.raises(WireError):
        FetchRequest.decode(7, data[:-12] + struct.pack(">iii", count, 1, 2))


def test_null_in_a_non_nullable_field_is_rejected() -> None:
    with pytest.raises(WireError):
        HeartbeatRequest.decode(0, struct.pack(">hih", -1, 0, 0))
    with pytest.raises(WireError):
        HeartbeatRequest.decode(4, b"\0" + struct.pack(">i", 0) + b"\x01\0\0")
    with pytest.raises(WireError):
        MetadataRequest.decode(0, struct.pack(">i", -1))
    assert MetadataRequest.decode(1, struct.pack(">i", -1))[0].topics is None


def test_invalid_utf8_is_replaced() -> None:
    """As Java reads it."""
    message, _ = HeartbeatRequest.decode(0, struct.pack(">h3sih", 3, b"a\xff\xfe", 0, 0))
    assert message.group_id == "a\ufffd\ufffd"
    message, _ = HeartbeatRequest.decode(
        0, struct.pack(">h6sih", 6, b"\xed\xa0\x80\xed\xa0b", 0, 0)
    )
    assert message.group_id == "\ufffd\ufffdb", "a surrogate is one character, cut or not"


def test_varint_of_six_bytes_is_rejected() -> None:
    with pytest.raises(WireError):
        HeartbeatRequest.decode(4, b"\xff\xff\xff\xff\xff\x01" + b"\0" * 100)


def test_unknown_tagged_fields_are_skipped() -> None:
    data = encoded(SyncGroupRequest(group_id="g"), 4)
    assert data.endswith(b"\0")
    more = data[:-1] + b"\x02" + b"\x07\x03abc" + b"\xff\x01\x00"
    assert SyncGroupRequest.decode(4, more) == (SyncGroupRequest(group_id="g"), len(more))
    with pytest.raises(WireError):
        SyncGroupRequest.decode(4, data[:-1] + b"\x01\x07\x04abc")


def test_unknown_tagged_fields_beside_known_ones_are_skipped() -> None:
    request = FetchRequest(cluster_id="c")
    data = encoded(request, 12)
    at = data.index(b"\x01\x00\x02\x02c")
    more = data[:at] + b"\x02\x00\x02\x02c\x09\x01!" + data[at + 5 :]
    assert FetchRequest.decode(12, more)[0] == request


@pytest.mark.parametrize("size", [b"\x00", b"\x03", b"\xff\xff\xff\xff\x0f"])
def test_size_of_a_known_tagged_field_is_ignored(size: bytes) -> None:
    """As for Apache Kafka; only what nobody knows is passed over by it."""
    request = FetchRequest(cluster_id="c")
    data = encoded(request, 12).replace(b"\x01\x00\x02\x02c", b"\x01\x00" + size + b"\x02c")
    assert FetchRequest.decode(12, data) == (request, len(data))
    with pytest.raises(WireError):
        FetchRequest.decode(12, data[:-5] + b"\x01\x63" + b"\xff\xff\xff\xff\x0f" + b"c")


def test_varints_beyond_31_bits_are_negative() -> None:
    """As Java reads them: no tagged fields, a null string, no list."""
    data = encoded(FetchRequest(), 12)
    many = data[:-1] + b"\xff\xff\xff\xff\x7f"
    assert FetchRequest.decode(12, many) == (FetchRequest(), len(many))
    with pytest.raises(WireError, match="null"):
        HeartbeatRequest.decode(4, b"\xff\xff\xff\xff\x0f" + b"\0" * 100)
    with pytest.raises(WireError, match="longer"):
        HeartbeatRequest.decode(4, b"\x80\x80\x80\x80\x08" + b"\0" * 100)


def test_large_records_are_encoded_without_a_copy() -> None:
    first, second, small = memoryview(b"a" * 5000), b"b" * 5000, b"c" * 10
    partition = FetchResponse.PartitionData(records=[first, second, small])
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    for version in versions(FetchResponse):
        buffers = FetchResponse(responses=[topic]).encode(version)
        assert any(buffer is first for buffer in buffers)
        assert any(buffer is second for buffer in buffers)
        message, _ = FetchResponse.decode(version, b"".join(buffers))
        assert message.responses[0].partitions[0].records == bytes(first) + second + small


def test_decoded_records_are_views_of_the_frame() -> None:
    partition = ProduceRequest.PartitionProduceData(records=b"r" * 5000)
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    frame = bytearray(encoded(ProduceRequest(topic_data=[topic]), 9))
    request, _ = ProduceRequest.decode(9, frame)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    frame[frame.index(b"rrr")] = ord("R")
    assert records[0] == ord("R")


@given(st.integers(0, (1 << 32) - 1))
def test_unsigned_varints_round_trip(value: int) -> None:
    from urteil.broker.wire.primitives import encode_uvarint, read_uvarint

    data = encode_uvarint(value)
    assert read_uvarint(data, 0) == (value if value < 1 << 31 else value - (1 << 32), len(data))
