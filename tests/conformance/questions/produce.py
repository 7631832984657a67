"""Produce: versions, acks, places, formats, and every way in which records can be wrong."""

from __future__ import annotations

import struct
from typing import Any

import crc32c

from tests.conformance.questions.registry import RUN, Asker, Subject
from tests.conformance.records import NOW_MS, batch, message, produce
from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.batches import build_batch
from urteil.broker.wire.framing import RequestHeader, encode_request
from urteil.broker.wire.messages import ApiVersionsRequest, ProduceRequest

PRODUCE = Subject("Produce", ApiKey.PRODUCE)


def topic_of(side: Side) -> str:
    """A topic that questions write to without looking at what is in it but what they wrote."""
    return side.make_once(_topic)


def _topic(side: Side) -> str:
    return side.create(f"produced-{RUN}", [(1, 2), (2, 3), (1, 3)])


def send(asker: Asker, *args: Any, to: int = 1, **kwargs: Any) -> Any:
    """Without offsets: questions share a topic, and each adds to it as many as the other side."""
    return asker.ask(produce(*args, **kwargs), to=to)


ACKS = {"1": 1, "all": -1, "2": 2, "-2": -2, "32767": 32767}


@PRODUCE.each("acks", ACKS, versions=range(3, 12))
def acks(asker: Asker, given: int) -> Any:
    return send(asker, topic_of(asker.side), batch([b"a", b"b"]), acks=given, partition=2)


OLD = b"".join(message(0, n, value) for n, value in enumerate([b"a", None, b"c"]))
NEWER = b"".join(message(1, n, value) for n, value in enumerate([b"a", None, b"c"]))


@PRODUCE.each("messages of magic", {"0": OLD, "1": NEWER, "2": batch([b"a"])}, until=2)
def old_formats(asker: Asker, records: bytes) -> Any:
    """A null value is a tombstone."""
    return send(asker, topic_of(asker.side), records)


@PRODUCE.each("messages of an old magic", {"0": message(0, 0, b"a"), "1": NEWER}, since=3)
def old_formats_in_new_versions(asker: Asker, records: bytes) -> Any:
    return send(asker, topic_of(asker.side), records)


PLACES: dict[str, tuple[str | None, int, int]] = {
    "unknown topic": ("never-there", 0, 1),
    "unknown partition": (None, 9, 1),
    "partition -1": (None, -1, 1),
    "led elsewhere": (None, 1, 1),
    "no replica there": (None, 0, 3),
    "follower": (None, 0, 2),
    "bad name": ("a b", 0, 1),
    "empty name": ("", 0, 1),
    "offsets topic": ("__consumer_offsets", 0, 1),
}


@PRODUCE.each("place", PLACES, versions=(2, 3, 7, 8, 9, 10, 11))
def places(asker: Asker, place: tuple[str | None, int, int]) -> Any:
    asker.side.coordinator("any")
    name, partition, to = place
    data = batch([b"a"]) if asker.version > 2 else message(1, 0, b"a")
    return send(
        asker, name if name is not None else topic_of(asker.side), data, partition=partition, to=to
    )


@PRODUCE.question("good and bad places together", since=3)
def together(asker: Asker) -> Any:
    data = batch([b"a"])
    return send(asker, topic_of(asker.side), data, more=[("never-there", 0, data)])


@PRODUCE.question("a partition twice", since=3)
def twice(asker: Asker) -> Any:
    topic = asker.topic()
    return send(asker, topic, batch([b"a"]), more=[(topic, 0, batch([b"b", b"c"]))])


@PRODUCE.question("nothing", since=3)
def nothing(asker: Asker) -> Any:
    return asker.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[]))


@PRODUCE.question("a transactional id that nobody has", since=3)
def transactional(asker: Asker) -> Any:
    request = produce(topic_of(asker.side), batch([b"a"]))
    return asker.ask(
        ProduceRequest(
            transactional_id="nobody", acks=-1, timeout_ms=1000, topic_data=request.topic_data
        )
    )


def _patched(data: bytes, at: int, new: bytes, *, crc: bool = True) -> bytes:
    """A batch with bytes exchanged, and its CRC made right again."""
    out = bytearray(data)
    out[at : at + len(new)] = new
    if crc:
        out[17:21] = struct.pack(">I", crc32c.crc32c(bytes(out[21:])))
    return bytes(out)


GOOD = batch([b"a", b"b", b"c"])
WRONG: dict[str, bytes] = {
    "no records": b"",
    "cut header": GOOD[:40],
    "cut batch": GOOD[:-5],
    "garbage": b"\x07" * 100,
    "two batches": GOOD + batch([b"d"]),
    "bytes after the batch": GOOD + b"abcdef",
    "a batch and most of another": GOOD + GOOD[:30],
    "wrong crc": _patched(GOOD, 17, b"\0\0\0\0", crc=False),
    "flipped bit": _patched(GOOD, len(GOOD) - 3, b"\xff", crc=False),
    "magic 3": _patched(GOOD, 16, b"\x03"),
    "magic -1": _patched(GOOD, 16, b"\xff"),
    "length zero": _patched(GOOD, 8, struct.pack(">i", 0), crc=False),
    "length below zero": _patched(GOOD, 8, struct.pack(">i", -1), crc=False),
    "length that lies": _patched(GOOD, 8, struct.pack(">i", 1 << 20), crc=False),
    "base offset not 0": batch([b"a"], base_offset=5),
    "count too large": _patched(GOOD, 57, struct.pack(">i", 9)),
    "count zero": _patched(GOOD, 57, struct.pack(">i", 0)),
    "count below zero": _patched(GOOD, 57, struct.pack(">i", -1)),
    "last offset delta too large": _patched(GOOD, 23, struct.pack(">i", 9)),
    "last offset delta below zero": _patched(GOOD, 23, struct.pack(">i", -1)),
    "control batch": batch([b"a"], control=True),
    "transactional without id": batch([b"a"], transactional=True),
    "gzip": batch([b"a" * 100], compression=1),
    "unknown codec": _patched(GOOD, 21, struct.pack(">h", 7)),
    "too large": batch([b"x" * 1_100_000]),
    "leader epoch set": batch([b"a"], leader_epoch=77),
    "no timestamp": batch([b"a"], at_ms=-1),
    "timestamp far ahead": batch([b"a"], at_ms=NOW_MS + 10 * 86_400_000),
    "timestamp of 1970": batch([b"a"], at_ms=0),
    "marked as of the broker's time": batch([b"a", b"b"], log_append_time=True),
    "marked as of the broker's time, without time": batch([b"a"], log_append_time=True, at_ms=-1),
    "sequence without producer": _patched(GOOD, 53, struct.pack(">i", 5)),
    "producer without sequence": _patched(GOOD, 43, struct.pack(">qh", 8, 0)),
    "attributes unused": _patched(GOOD, 21, struct.pack(">h", 0x700)),
}


@PRODUCE.each("records", WRONG, versions=(3, 9))
def records(asker: Asker, data: bytes) -> Any:
    return send(asker, asker.topic(), data)


PARTS = {
    "nothing": b"", "cut header": GOOD[:40], "cut batch": GOOD[:-5],
    "cut message": message(1, 0, b"a")[:-1], "garbage": b"\x07" * 100,
    "bytes after the batch": GOOD + b"abcdef",
}  # fmt: skip


@PRODUCE.each("records to old versions", PARTS, versions=(0, 2))
def batch_parts(asker: Asker, data: bytes) -> Any:
    """To null records Apache Kafka gives no answer, so that is not asked."""
    return send(asker, asker.topic(), data)


OTHER_ACKS = {
    f"{what}, acks {acks}": (what, acks)
    for what in ("wrong crc", "too large", "cut batch", "gzip")
    for acks in (0, 1)
}


@PRODUCE.each("records", OTHER_ACKS, versions=(7,))
def records_with_other_acks(asker: Asker, given: tuple[str, int]) -> Any:
    """With acks=0 there is no answer but the next request's, or the end of the connection."""
    what, acks = given
    if acks:
        return send(asker, asker.topic(), WRONG[what], acks=1)
    return after_silence(asker, topic_of(asker.side), WRONG[what])


def after_silence(asker: Asker, topic: str, data: bytes, partition: int = 0) -> str:
    request = encode_request(
        RequestHeader(0, asker.version, 5, "x"), produce(topic, data, acks=0, partition=partition)
    )
    then = encode_request(RequestHeader(18, 0, 5, "x"), ApiVersionsRequest())
    try:
        with asker.side.connect(1) as connection:
            connection.sendall(b"".join([*request, *then]))
            return "answered" if connection.recv(4) else CLOSED
    except ConnectionError:
        return CLOSED


@PRODUCE.each("acks 0, place", {"unknown topic": "never-there", "led elsewhere": None}, since=3)
def acks_0_in_the_wrong_place(asker: Asker, name: str | None) -> Any:
    return after_silence(asker, name or topic_of(asker.side), GOOD, 0 if name else 1)


CONFIGURED: dict[str, tuple[dict[str, str], bytes]] = {
    "min ISR above the replicas": ({"min.insync.replicas": "3"}, GOOD),
    "smaller limit": ({"max.message.bytes": "100"}, batch([b"x" * 200])),
    "append time": ({"message.timestamp.type": "LogAppendTime"}, GOOD),
    "append time, and marked so": (
        {"message.timestamp.type": "LogAppendTime"}, batch([b"a"], log_append_time=True)
    ),
    "timestamp too old": ({"message.timestamp.before.max.ms": "1000"}, batch([b"a"], at_ms=1000)),
    "timestamp too new": (
        {"message.timestamp.after.max.ms": "1000"}, batch([b"a"], at_ms=NOW_MS + 86_400_000)
    ),
    "compacted without key": (
        {"cleanup.policy": "compact"},
        build_batch([(None, b"v", (), NOW_MS), (b"k", b"v", (), NOW_MS)]),
    ),
    "compacted with key": ({"cleanup.policy": "compact"}, GOOD),
    "batch larger than a segment": ({"segment.bytes": "500"}, batch([b"x" * 600])),
}  # fmt: skip


@PRODUCE.each("topic", CONFIGURED, versions=(3, 7, 9))
def configured(asker: Asker, given: tuple[dict[str, str], bytes]) -> Any:
    topic = asker.topic([(1, 2)], given[0])
    return [send(asker, topic, given[1]), send(asker, topic, given[1], acks=1)]
