"""ApiVersions at every version, and what is not served."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.side import CLOSED, Side, read_frame
from urteil.broker.wire.framing import RequestHeader, encode_request
from urteil.broker.wire.messages import REQUESTS, ApiVersionsRequest, MetadataRequest


def _asked(version: int, software: str = "urteil") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=software, client_software_version="1.0")


def _ranges(side: Side, version: int = 3) -> dict[int, tuple[int, int]]:
    answer = side.get(_asked(version), version)
    return {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}


@pytest.mark.parametrize("version", range(5))
def test_api_versions(pair: Pair, version: int) -> None:
    def question(side: Side) -> Any:
        answer = side.ask(_asked(version), version)
        ours = _ranges(pair.ours)
        answer["api_keys"] = [one for one in answer["api_keys"] if one["api_key"] in ours]
        return answer

    pair.same(question)


def test_every_served_api_has_kafka_s_range(pair: Pair) -> None:
    ours, theirs = _ranges(pair.ours), _ranges(pair.theirs)
    assert ours == {key: theirs[key] for key in ours}


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_a_version_of_api_versions_that_is_not_known(pair: Pair, version: int) -> None:
    frame = struct.pack(">hhih", 18, version, 5, 1) + b"x"
    pair.same(lambda side: side.raw(struct.pack(">i", len(frame)) + frame))


@pytest.mark.parametrize("software", ["", "bad name", "-x", "ok-1.2", "ok-"])
def test_the_client_s_software(pair: Pair, software: str) -> None:
    def question(side: Side) -> Any:
        answer = side.ask(_asked(3, software), 3)
        return answer["error_code"], bool(answer["api_keys"])

    pair.same(question)


@pytest.mark.parametrize("key", [-1, 59, 62, 9999, 32767])
def test_a_key_that_nobody_knows(pair: Pair, key: int) -> None:
    frame = struct.pack(">hhih", key, 0, 5, 1) + b"x\0\0\0\0\0\0\0\0"
    pair.same(lambda side: side.raw(struct.pack(">i", len(frame)) + frame))


@pytest.mark.parametrize("key", sorted(REQUESTS))
def test_versions_beyond_the_range_of_served_apis(pair: Pair, key: int) -> None:
    served = _ranges(pair.ours).get(key)
    if served is None or key == 18:
        return
    for version in (served[0] - 1, served[1] + 1):
        frame = struct.pack(">hhih", key, version, 5, 1) + b"x" + bytes(40)
        pair.same(lambda side, f=frame: side.raw(struct.pack(">i", len(f)) + f))  # type: ignore[misc]


def _metadata_frame(version: int = 1) -> bytes:
    request = MetadataRequest(topics=[])
    return b"".join(encode_request(RequestHeader(3, version, 5, "x"), request))


BROKEN = {
    "size below zero": struct.pack(">i", -1),
    "smallest size": struct.pack(">i", -(1 << 31)),
    "size beyond the limit": struct.pack(">i", 104_857_601),
    "largest size": struct.pack(">i", (1 << 31) - 1),
    "empty frame": struct.pack(">i", 0),
    "no whole header": struct.pack(">ihh", 4, 3, 1),
    "client id that lies": struct.pack(">ihhih", 10, 3, 1, 5, 100),
    "client id of a negative length": struct.pack(">ihhihi", 14, 3, 1, 5, -1, 0),
    "client id of length -2": struct.pack(">ihhihi", 14, 3, 1, 5, -2, 0),
    "no body": struct.pack(">ihhih", 10, 3, 1, 5, -1),
    "array that lies": struct.pack(">ihhihi", 14, 3, 1, 5, -1, 1000),
    "array of -1 where null may be": struct.pack(">ihhihi", 14, 3, 1, 5, -1, -1),
    "array of -1 where null may not be": struct.pack(">ihhihi", 14, 3, 0, 5, -1, -1),
    "array of -2": struct.pack(">ihhihi", 14, 3, 1, 5, -1, -2),
    "string null where none may be": struct.pack(">ihhihih", 16, 3, 1, 5, -1, 1, -1),
    "string that lies": struct.pack(">ihhihih", 16, 3, 1, 5, -1, 1, 300),
    "bytes after the body": struct.pack(">i", len(_metadata_frame()) - 4 + 3)
    + _metadata_frame()[4:]
    + b"abc",
    "truncated flexible body": struct.pack(">i", len(_metadata_frame(9)) - 4 - 3)
    + _metadata_frame(9)[4:-3],
    "not kafka at all": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "controlled shutdown 0 without client id": struct.pack(">ihhii", 12, 7, 0, 5, 99),
}


@pytest.mark.parametrize("what", BROKEN)
def test_frames_that_break_the_protocol(pair: Pair, what: str) -> None:
    def question(side: Side) -> Any:
        answer = side.raw(BROKEN[what])
        return answer if isinstance(answer, str) else "answered"

    pair.same(question)


def test_text_that_is_no_utf_8(pair: Pair) -> None:
    """Java reads it as replacement characters; ours takes it for what it is, a broken peer."""
    frame = struct.pack(">ihhihih", 17, 3, 1, 5, -1, 1, 1) + b"\xff"
    assert pair.theirs.raw(frame) != CLOSED
    assert pair.ours.raw(frame) == CLOSED


def test_a_request_cut_off_and_ended(pair: Pair) -> None:
    pair.same(lambda side: side.raw(_metadata_frame()[:-2], end=True))


def test_requests_in_a_row_are_answered_in_order(pair: Pair) -> None:
    def question(side: Side) -> list[int]:
        frames = [
            b"".join(encode_request(RequestHeader(3, 1, number, None), MetadataRequest(topics=[])))
            for number in range(20)
        ]
        with side.connect(2) as connection:
            connection.sendall(b"".join(frames))
            answers = [read_frame(connection) for _ in frames]
        return [int.from_bytes((answer or b"")[:4], "big") for answer in answers]

    assert pair.same(question) == list(range(20))
