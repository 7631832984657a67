"""Produce: versions, acks, old formats, what is refused; idempotent producers."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.records import NOW_MS, batch, message, produce
from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import InitProducerIdRequest


@pytest.fixture(scope="module")
def topic(pair: Pair) -> str:
    name = pair.name("produced")
    pair.both(lambda side: side.create(name, [(1, 2), (2, 3), (1, 3)]))
    return name


def send(side: Side, version: int, *args: Any, to: int = 1, **kwargs: Any) -> Any:
    answer = side.ask(produce(*args, **kwargs), version, to=to)
    if answer == CLOSED:
        return answer
    for one in answer["responses"]:
        for partition in one["partition_responses"]:
            appended = partition["log_append_time_ms"]
            partition["log_append_time_ms"] = "a time" if appended > NOW_MS - 600_000 else appended
            del partition["error_message"]  # for people; ours explains more often
    answer["responses"].sort(key=lambda one: one["name"])
    return answer


@pytest.mark.parametrize("version", range(3, 12))
@pytest.mark.parametrize("acks", [1, -1])
def test_produce(pair: Pair, topic: str, version: int, acks: int) -> None:
    pair.same(lambda side: send(side, version, topic, batch([b"a", b"b"]), acks=acks, partition=2))


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats(pair: Pair, topic: str, version: int, magic: int) -> None:
    """Magic 0 and 1 in Produce 0 to 2; a null value is a tombstone."""
    values = [b"a", None, b"c"]
    records = b"".join(message(magic, n, value) for n, value in enumerate(values))
    pair.same(lambda side: send(side, version, topic, records))


@pytest.mark.parametrize("version", [3, 7, 11])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_in_new_versions(pair: Pair, topic: str, version: int, magic: int) -> None:
    records = message(magic, 0, b"a")
    pair.same(lambda side: send(side, version, topic, records))


@pytest.mark.parametrize("version", range(3))
def test_new_format_in_old_versions(pair: Pair, topic: str, version: int) -> None:
    pair.same(lambda side: send(side, version, topic, batch([b"a"])))


@pytest.mark.parametrize("acks", [2, -2, 3, 32767])
@pytest.mark.parametrize("version", [3, 11])
def test_acks_that_nobody_knows(pair: Pair, topic: str, acks: int, version: int) -> None:
    pair.same(lambda side: send(side, version, topic, batch([b"a"]), acks=acks))


@pytest.mark.parametrize("version", [2, 3, 7, 8, 9, 10, 11])
def test_wrong_places(pair: Pair, topic: str, version: int) -> None:
    pair.both(lambda side: side.coordinator("any"))
    for name, partition, to in (
        ("never-there", 0, 1), (topic, 9, 1), (topic, -1, 1), (topic, 1, 1), (topic, 0, 3),
        ("a b", 0, 1), ("", 0, 1), ("__consumer_offsets", 0, 1),
    ):  # fmt: skip
        pair.same(
            lambda side, n=name, p=partition, t=to: send(  # type: ignore[misc]
                side, version, n, batch([b"a"]), partition=p, to=t
            )
        )


def test_good_and_bad_places_together(pair: Pair, topic: str) -> None:
    more = [("never-there", 0, batch([b"a"]))]
    pair.same(lambda side: send(side, 11, topic, batch([b"a"]), more=more))


def test_nothing_at_all(pair: Pair, topic: str) -> None:
    from urteil.broker.wire.messages import ProduceRequest

    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[])
    pair.same(lambda side: side.ask(request, 9))


def _patched(data: bytes, at: int, new: bytes, *, crc: bool = True) -> bytes:
    """A batch with bytes exchanged, and its CRC made right again."""
    import crc32c

    out = bytearray(data)
    out[at : at + len(new)] = new
    if crc:
        out[17:21] = struct.pack(">I", crc32c.crc32c(bytes(out[21:])))
    return bytes(out)


GOOD = batch([b"a", b"b", b"c"])
WRONG: dict[str, bytes | None] = {
    "no records": b"",
    "cut header": GOOD[:40],
    "cut batch": GOOD[:-5],
    "garbage": b"\x07" * 100,
    "two batches": GOOD + batch([b"d"]),
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
    "sequence without producer": _patched(GOOD, 53, struct.pack(">i", 5)),
    "producer without sequence": _patched(GOOD, 43, struct.pack(">qh", 8, 0)),
    "attributes unused": _patched(GOOD, 21, struct.pack(">h", 0x700)),
}


@pytest.mark.parametrize("what", WRONG)
def test_records(pair: Pair, what: str) -> None:
    name = pair.name("wrong")
    pair.both(lambda side: side.create(name))
    pair.same(lambda side: send(side, 9, name, WRONG[what]))


@pytest.mark.parametrize("configs", [{}, {"message.timestamp.type": "LogAppendTime"}])
def test_a_batch_that_says_it_has_the_broker_s_time(pair: Pair, configs: dict[str, str]) -> None:
    """Apache Kafka takes it and clears the mark, unless its own time counts."""
    name = pair.name("marked")
    pair.both(lambda side: side.create(name, configs=configs))
    for at_ms in (NOW_MS, -1):
        marked = batch([b"a", b"b"], log_append_time=True, at_ms=at_ms)
        pair.same(lambda side, m=marked: send(side, 9, name, m))  # type: ignore[misc]


def test_bytes_after_a_batch(pair: Pair) -> None:
    """Dropped where they are no whole batch. To null records Apache Kafka gives no answer."""
    name = pair.name("longer")
    pair.both(lambda side: side.create(name))
    for version in (2, 9):
        for more in (b"abcdef", GOOD[:30]):
            pair.same(lambda side, v=version, m=more: send(side, v, name, GOOD + m))  # type: ignore[misc]


@pytest.mark.parametrize("version", [0, 2])
def test_old_versions_without_a_whole_batch(pair: Pair, version: int) -> None:
    name = pair.name("nothing")
    pair.both(lambda side: side.create(name))
    for records in (b"", GOOD[:40], GOOD[:-5], message(1, 0, b"a")[:-1], b"\x07" * 100):
        pair.same(lambda side, r=records: send(side, version, name, r))  # type: ignore[misc]


@pytest.mark.parametrize("what", ["wrong crc", "too large", "cut batch", "gzip"])
@pytest.mark.parametrize("acks", [0, 1])
def test_records_with_other_acks(pair: Pair, topic: str, what: str, acks: int) -> None:
    """With acks=0 there is no answer but the next request's, or the end of the connection."""

    def question(side: Side) -> Any:
        if acks:
            return send(side, 7, topic, WRONG[what], acks=1)
        call = side.start(produce(topic, WRONG[what], acks=0), 7)
        return _after_silence(side, call)

    pair.same(question)


def _after_silence(side: Side, call: Any) -> str:
    from urteil.broker.wire.framing import RequestHeader, encode_request
    from urteil.broker.wire.messages import ApiVersionsRequest

    asked = encode_request(RequestHeader(18, 0, 5, "x"), ApiVersionsRequest())
    try:
        call._socket.sendall(b"".join(asked))
        return "answered" if call._socket.recv(4) else CLOSED
    except ConnectionError:
        return CLOSED
    finally:
        call._socket.close()


@pytest.mark.parametrize("place", [("never-there", 0), ("other leader", 1)])
def test_acks_0_in_the_wrong_place(pair: Pair, topic: str, place: tuple[str, int]) -> None:
    name = topic if place[0] == "other leader" else place[0]

    def question(side: Side) -> Any:
        call = side.start(produce(name, GOOD, acks=0, partition=place[1]), 7)
        return _after_silence(side, call)

    pair.same(question)


def test_not_enough_replicas(pair: Pair) -> None:
    """min.insync.replicas above the number of replicas counts as their number."""
    name = pair.name("few")
    pair.both(lambda side: side.create(name, [(1, 2)], {"min.insync.replicas": "3"}))
    pair.same(lambda side: send(side, 9, name, GOOD))
    pair.same(lambda side: send(side, 9, name, GOOD, acks=1))


CONFIGURED: dict[str, tuple[dict[str, str], bytes]] = {
    "smaller limit": ({"max.message.bytes": "100"}, batch([b"x" * 200])),
    "append time": ({"message.timestamp.type": "LogAppendTime"}, GOOD),
    "timestamp too old": ({"message.timestamp.before.max.ms": "1000"}, batch([b"a"], at_ms=1000)),
    "timestamp too new": (
        {"message.timestamp.after.max.ms": "1000"}, batch([b"a"], at_ms=NOW_MS + 86_400_000)
    ),
    "compacted without key": ({"cleanup.policy": "compact"}, b""),
    "compacted with key": ({"cleanup.policy": "compact"}, GOOD),
    "batch larger than a segment": ({"segment.bytes": "500"}, batch([b"x" * 600])),
}  # fmt: skip


@pytest.mark.parametrize("what", CONFIGURED)
def test_configured_topics(pair: Pair, what: str) -> None:
    from urteil.broker.wire.batches import build_batch

    configs, records = CONFIGURED[what]
    records = records or build_batch([(None, b"v", (), NOW_MS), (b"k", b"v", (), NOW_MS)])
    name = pair.name("configured")
    pair.both(lambda side: side.create(name, configs=configs))
    for version in (7, 9):
        pair.same(lambda side, v=version: send(side, v, name, records))  # type: ignore[misc]


# -- idempotent producers -----------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_init_producer_id(pair: Pair, version: int) -> None:
    def question(side: Side) -> Any:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # until there is a block of ids
        side.until(lambda: side.get(request, version).error_code != loading)
        answer = side.ask(request, version)
        return answer["error_code"], answer["producer_id"] >= 0, answer["producer_epoch"]

    pair.same(question)


@pytest.mark.parametrize("known", [(5, -1), (-1, 3), (5, 3), (5, 32767), (-2, -2)])
def test_init_producer_id_with_a_known_one(pair: Pair, known: tuple[int, int]) -> None:
    def question(side: Side) -> Any:
        request = InitProducerIdRequest(
            transactional_id=None,
            transaction_timeout_ms=1000,
            producer_id=known[0],
            producer_epoch=known[1],
        )
        answer = side.ask(request, 4)
        return answer["error_code"], answer["producer_id"] >= 0, answer["producer_epoch"]

    pair.same(question)


def test_an_empty_transactional_id(pair: Pair) -> None:
    request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
    pair.same(lambda side: side.ask(request, 4))


Step = tuple[int, int, int]  # epoch, first sequence, records

SEQUENCES: dict[str, list[Step]] = {
    "in order": [(0, 0, 2), (0, 2, 1), (0, 3, 5)],
    "not from 0": [(0, 7, 1), (0, 8, 1)],
    "gap": [(0, 0, 2), (0, 3, 1), (0, 2, 1)],
    "duplicate of the last": [(0, 0, 2), (0, 0, 2), (0, 2, 1)],
    "duplicate of five back": [(0, n, 1) for n in range(5)] + [(0, 0, 1)],
    "duplicate of six back": [(0, n, 1) for n in range(6)] + [(0, 0, 1)],
    "overlap": [(0, 0, 3), (0, 1, 2), (0, 0, 2)],
    "old epoch": [(3, 0, 1), (2, 1, 1), (3, 1, 1)],
    "new epoch from 0": [(0, 0, 1), (1, 0, 1), (1, 1, 1)],
    "new epoch not from 0": [(0, 0, 1), (1, 1, 1)],
    "duplicate of an old epoch": [(0, 0, 1), (1, 0, 1), (0, 0, 1)],
    "wrap": [(0, (1 << 31) - 2, 2), (0, 0, 1)],
    "wrap inside a batch": [(0, (1 << 31) - 2, 4), (0, 2, 1), (0, (1 << 31) - 2, 4)],
    "wrap without reaching the end": [(0, (1 << 31) - 2, 1), (0, 0, 1)],
}


@pytest.mark.parametrize("what", SEQUENCES)
def test_sequences(pair: Pair, what: str) -> None:
    name = pair.name("sequences")
    pair.both(lambda side: side.create(name))

    def step(epoch: int, first: int, count: int) -> Callable[[Side], Any]:
        data = batch([b"v"] * count, producer_id=4242, producer_epoch=epoch, base_sequence=first)
        return lambda side: send(side, 9, name, data)

    for one in SEQUENCES[what]:
        pair.same(step(*one))


def test_two_batches_of_a_producer_in_one_request(pair: Pair, topic: str) -> None:
    """Apache Kafka takes one batch a partition of a producer with an id."""
    two = batch([b"v"], producer_id=99, producer_epoch=0, base_sequence=0)
    two += batch([b"v"], producer_id=99, producer_epoch=0, base_sequence=1)
    pair.same(lambda side: send(side, 9, topic, two))
