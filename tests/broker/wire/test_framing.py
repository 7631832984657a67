from __future__ import annotations

import struct

import pytest

from tests.broker.wire.strategies import ALL_MESSAGES, versions
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.framing import (
    RequestHeader,
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
)
from urteil.broker.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ControlledShutdownRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
)
from urteil.broker.wire.primitives import WireError
from urteil.broker.wire.schema import Message

by_message = pytest.mark.parametrize("cls", ALL_MESSAGES, ids=lambda cls: cls.__name__)


def frame_of(buffers: list[bytes | memoryview]) -> bytes:
    data = b"".join(buffers)
    assert struct.unpack(">i", data[:4])[0] == len(data) - 4
    return data[4:]


@by_message
def test_frames_round_trip_at_every_version(cls: type[Message]) -> None:
    for version in versions(cls):
        if cls.__name__.endswith("Request"):
            header = RequestHeader(cls.KEY, version, 77, "clïent")
            if (cls.KEY, version) == (ApiKey.CONTROLLED_SHUTDOWN, 0):
                header = RequestHeader(cls.KEY, version, 77, None)
            assert decode_request(frame_of(encode_request(header, cls()))) == (header, cls())
        else:
            frame = frame_of(encode_response(cls.KEY, version, -5, cls()))
            assert decode_response(cls.KEY, version, frame) == (-5, cls())


def test_request_headers_have_the_protocols_bytes() -> None:
    def head(api_key: int, version: int, message: Message) -> bytes:
        header = RequestHeader(api_key, version, 5, "c")
        return b"".join(encode_request(header, message))[4:]

    assert head(3, 8, MetadataRequest()).startswith(struct.pack(">hhih1s", 3, 8, 5, 1, b"c"))
    assert head(3, 9, MetadataRequest()).startswith(struct.pack(">hhih1sB", 3, 9, 5, 1, b"c", 0))
    bare = b"".join(
        encode_request(RequestHeader(7, 0, 5, "c"), ControlledShutdownRequest(broker_id=3))
    )
    assert bare[4:] == struct.pack(">hhii", 7, 0, 5, 3)


def test_api_versions_response_always_has_header_0() -> None:
    flexible = frame_of(encode_response(18, 4, 9, ApiVersionsResponse(error_code=35)))
    assert flexible.startswith(struct.pack(">ih", 9, 35))
    other = frame_of(encode_response(3, 12, 9, MetadataResponse(throttle_time_ms=1)))
    assert other.startswith(struct.pack(">iBi", 9, 0, 1))


def test_header_of_an_unknown_api_versions_version_is_read() -> None:
    data = frame_of(encode_request(RequestHeader(18, 3, 4, None), ApiVersionsRequest()))
    future = data[:2] + struct.pack(">h", 99) + data[4:]
    header, pos = decode_request_header(future)
    assert header == RequestHeader(18, 99, 4, None)
    assert pos == 11


def test_header_of_an_unknown_api_is_read() -> None:
    header, pos = decode_request_header(struct.pack(">hhih", 4711, 3, 1, -1))
    assert header == RequestHeader(4711, 3, 1, None)
    assert pos == 10
    with pytest.raises(WireError):
        decode_request(struct.pack(">hhih", 4711, 3, 1, -1))


def test_invalid_utf8_in_a_client_id_is_replaced() -> None:
    header, _ = decode_request_header(
        struct.pack(">hhih", 3, 0, 1, 4) + "größe".encode("latin-1")[:4]
    )
    assert header.client_id == "gr\ufffd\ufffd"


def test_tagged_fields_of_headers_are_skipped() -> None:
    plain = frame_of(encode_request(RequestHeader(18, 3, 4, "c"), ApiVersionsRequest()))
    tags = b"\x02\x00\x01x\x05\x00"
    assert decode_request(plain[:11] + tags + plain[12:])[0].client_id == "c"


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0" * 7,
        struct.pack(">hhih", 3, 0, 1, 5) + b"abc",
        struct.pack(">hhih", 3, 9, 1, -1),
        struct.pack(">hhih", 3, 9, 1, -1) + b"\x01\x00\x7f",
        struct.pack(">hhih", 3, 9, 1, -1) + b"\xff" * 9,
    ],
)
def test_malformed_request_headers_are_rejected(frame: bytes) -> None:
    with pytest.raises(WireError):
        decode_request_header(frame)


def test_malformed_responses_are_rejected() -> None:
    for frame in (b"", b"\0\0\0", b"\0\0\0\1"):
        with pytest.raises(WireError):
            decode_response(3, 12, frame)


def test_response_size_includes_uncopied_records() -> None:
    partition = FetchResponse.PartitionData(records=[b"x" * 4096, memoryview(b"y" * 4096)])
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    buffers = encode_response(1, 11, 1, FetchResponse(responses=[topic]))
    assert len(buffers) == 3
    frame_of(buffers)
