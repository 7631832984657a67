"""Frames and headers that break the protocol: closed, silent or answered."""

from __future__ import annotations

import struct
from typing import Any

from tests.conformance.fetching import fetch
from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.records import batch, produce
from tests.conformance.side import ANSWER_TIMEOUT_S, read_frame
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.framing import RequestHeader, encode_request
from urteil.broker.wire.messages import MetadataRequest

FRAMES = Subject("Frames")


def _metadata(version: int = 1, number: int = 5) -> bytes:
    header = RequestHeader(3, version, number, "x")
    return b"".join(encode_request(header, MetadataRequest(topics=[])))


def _sized(frame: bytes, size: int) -> bytes:
    return struct.pack(">i", size) + frame[4:]


BROKEN = {
    "size below zero": struct.pack(">i", -1),
    "smallest size": struct.pack(">i", -(1 << 31)),
    "size beyond the limit": struct.pack(">i", 104_857_601),
    "largest size": struct.pack(">i", (1 << 31) - 1),
    "empty frame": struct.pack(">i", 0),
    "no whole header": struct.pack(">ihh", 4, 3, 1),
    "header of one byte": struct.pack(">ib", 1, 0),
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
    "text that is not UTF-8": struct.pack(">ihhihih", 17, 3, 1, 5, -1, 1, 1) + b"\xff",
    "bytes after the body": _sized(_metadata(), len(_metadata()) - 4 + 3) + b"abc",
    "truncated flexible body": _sized(_metadata(9), len(_metadata(9)) - 4 - 3)[:-3],
    "a tag section that lies": struct.pack(">ihhihcb", 12, 3, 9, 5, 1, b"x", 100),
    "not kafka at all": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a TLS hello": bytes.fromhex("16030100c8010000c40303") + bytes(40),
    "controlled shutdown 0 without client id": struct.pack(">ihhii", 12, 7, 0, 5, 99),
}


@FRAMES.each("sent", BROKEN)
def broken(asker: Asker, data: bytes) -> Any:
    answer = asker.side.raw(data)
    return answer if isinstance(answer, str) else "answered"


@FRAMES.question("a request cut off and ended")
def cut_off(asker: Asker) -> Any:
    return asker.side.raw(_metadata()[:-2], end=True)


@FRAMES.question("twenty requests at once are answered in order")
def in_a_row(asker: Asker) -> list[int]:
    with asker.side.connect(2) as connection:
        connection.sendall(b"".join(_metadata(number=number) for number in range(20)))
        answers = [read_frame(connection) for _ in range(20)]
    return [int.from_bytes((answer or b"")[:4], "big") for answer in answers]


BAD_SIZES = {"below zero": -1, "beyond the limit": 1 << 30}


@FRAMES.each("what comes before a size that is none is answered,", BAD_SIZES)
def before_a_bad_size(asker: Asker, size: int) -> list[Any]:
    with asker.side.connect(2) as connection:
        connection.sendall(_metadata(number=1) + _metadata(number=2) + struct.pack(">i", size))
        answers = [read_frame(connection) for _ in range(3)]
    return [answer and answer[:4] for answer in answers]


LATIN = "größe".encode("latin-1")


@FRAMES.question("a client id that is not UTF-8")
def client_id(asker: Asker) -> Any:
    frame = struct.pack(">hhih", 3, 1, 5, len(LATIN)) + LATIN + struct.pack(">i", 0)
    answer = asker.side.raw(struct.pack(">i", len(frame)) + frame)
    return answer if isinstance(answer, str) else "answered"


NO_TEXT = {
    "Latin": LATIN, "a surrogate": b"a\xed\xa0\x80b", "half of one": b"\xed\xa0b",
    "cut": b"\xed\xa0", "a pair": b"\xed\xa0\xbd\xed\xb8\x80", "long zero": b"\xc0\x80",
}  # fmt: skip


@FRAMES.each("a topic's name that is not UTF-8:", NO_TEXT)
def topic_name(asker: Asker, name: bytes) -> Any:
    body = struct.pack(">hhihih", 3, 1, 77, -1, 1, len(name)) + name
    frame = asker.side.raw(struct.pack(">i", len(body)) + body, patience_s=ANSWER_TIMEOUT_S)
    assert isinstance(frame, bytes), frame
    return asker.side.plain(asker.side.decode(MetadataRequest(), 1, frame))["topics"]


@FRAMES.question("records with acks 0, and the end")
def records_and_the_end(asker: Asker) -> int:
    """All that came before the end are taken."""
    topic, side = asker.topic(), asker.side
    header = RequestHeader(ApiKey.PRODUCE, 7, 77, "asker")
    with side.connect(1) as connection:
        for n in range(40):
            request = produce(topic, batch([b"%d" % n]), acks=0)
            connection.sendall(b"".join(encode_request(header, request)))
    ends: list[int] = []

    def came() -> bool:
        ends[:] = [fetch(side, 11, topic, [{}])["responses"][0]["partitions"][0]["high_watermark"]]
        return ends == [40]

    side.until(came)
    return ends[0]


@FRAMES.question("a request in pieces of one byte")
def in_pieces(asker: Asker) -> Any:
    with asker.side.connect(2) as connection:
        for byte in _metadata():
            connection.sendall(bytes([byte]))
        answer = read_frame(connection)
    return (answer or b"")[:4]


@FRAMES.question("what comes after a broken request is not answered")
def after_a_broken_one(asker: Asker) -> Any:
    answer = asker.side.raw(BROKEN["string that lies"] + _metadata())
    return answer if isinstance(answer, str) else "answered"
