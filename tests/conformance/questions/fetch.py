"""Fetch: from every kind of offset, limits, places, epochs, isolation, old readers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tests.conformance import fetching
from tests.conformance.fetching import STRANGE_ID
from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import LAST, filled
from tests.conformance.records import batch, message, produce
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import FetchRequest

FETCH = Subject("Fetch", ApiKey.FETCH)


def fetch(asker: Asker, topic: str, partitions: Sequence[dict[str, Any]], **more: Any) -> Any:
    return fetching.fetch(asker.side, asker.version, topic, partitions, **more)


OFFSETS = {
    "the start": 0, "the middle of a batch": 4, "the start of a batch": 12, "the last": LAST,
    "the end": LAST + 1, "beyond the end": LAST + 2, "far beyond": 1 << 40, "-1": -1, "-2": -2,
}  # fmt: skip


@FETCH.each("offset", OFFSETS, versions=range(18))
def from_offset(asker: Asker, offset: int) -> Any:
    return fetch(asker, filled(asker.side), [{"fetch_offset": offset}])


LIMITS = {str(limit): limit for limit in (-1, 0, 1, 100, 150, 500)}


@FETCH.each("bytes of a partition", LIMITS, versions=(2, 3, 11, 17))
def partition_limit(asker: Asker, limit: int) -> Any:
    """The first batch is whole from version 3 on."""
    return fetch(asker, filled(asker.side), [{"partition_max_bytes": limit}])


@FETCH.each("bytes of all", LIMITS, since=3)
def request_limit(asker: Asker, limit: int) -> Any:
    return fetch(asker, filled(asker.side), [{}], max_bytes=limit)


PLACES: dict[str, dict[str, Any]] = {
    "unknown partition": {"partition": 7},
    "partition -1": {"partition": -1},
    "no replica there": {"to": 3},
    "a follower": {"to": 2},
}
WHERE = (0, 4, 9, 10, 11, 12, 13, 15, 16, 17)


@FETCH.each("place", PLACES, versions=WHERE)
def from_a_place(asker: Asker, place: dict[str, Any]) -> Any:
    """Consumers may read from a follower from version 11 on (KIP-392)."""
    more = dict(place)
    to = more.pop("to", 1)
    return fetch(asker, filled(asker.side), [more], to=to)


@FETCH.question("an unknown topic", versions=WHERE)
def from_an_unknown_topic(asker: Asker) -> Any:
    return fetch(asker, "never-there", [{}])


@FETCH.question("two partitions, one led elsewhere", versions=WHERE)
def from_two(asker: Asker) -> Any:
    return fetch(asker, filled(asker.side), [{}, {"partition": 1}])


@FETCH.question("a partition twice", versions=WHERE)
def from_one_twice(asker: Asker) -> Any:
    return fetch(asker, filled(asker.side), [{}, {"fetch_offset": LAST}])


@FETCH.question("nothing")
def nothing(asker: Asker) -> Any:
    return asker.ask(FetchRequest(max_wait_ms=20, min_bytes=1, topics=[]))


@FETCH.each("topic id", {"strange": STRANGE_ID, "zero": UUID(int=0)}, since=13)
def from_an_id(asker: Asker, topic_id: UUID) -> Any:
    return fetch(asker, filled(asker.side), [{}], topic_id=topic_id)


@FETCH.each("current leader epoch", {str(n): n for n in (-2, -1, 0, 1, 99)}, since=9)
def current_epoch(asker: Asker, epoch: int) -> Any:
    return fetch(asker, filled(asker.side), [{"current_leader_epoch": epoch}])


FETCHED = {
    "within": (0, 4), "beyond": (0, 40), "later epoch": (5, 4), "none": (-1, 40), "at 0": (0, 0),
}  # fmt: skip


@FETCH.each("last fetched epoch", FETCHED, since=12)
def last_fetched_epoch(asker: Asker, fetched: tuple[int, int]) -> Any:
    partition = {
        "last_fetched_epoch": fetched[0],
        "fetch_offset": fetched[1],
        "current_leader_epoch": 0,
    }
    return fetch(asker, filled(asker.side), [partition])


@FETCH.each("isolation", {str(n): n for n in (-1, 0, 1, 2)}, since=4)
def isolation(asker: Asker, level: int) -> Any:
    return fetch(asker, filled(asker.side), [{}], isolation_level=level)


@FETCH.question("no isolation of places that are not there", since=4)
def isolation_of_nothing(asker: Asker) -> Any:
    """Only what is read needs one; then nothing is answered, what is not there neither."""
    topic, places = filled(asker.side), [{"partition": 7}, {"partition": 8}]
    answers = [fetch(asker, topic, some, isolation_level=2) for some in (places, [*places, {}])]
    if asker.version >= 7:  # no session comes of it
        answers.append(fetch(asker, topic, [{}], isolation_level=2, session_id=0, session_epoch=0))
    return answers


@FETCH.each("log start offset of the reader", {"0": 0, "beyond": 99, "-1": -1}, since=5)
def reader_start(asker: Asker, offset: int) -> Any:
    return fetch(asker, filled(asker.side), [{"log_start_offset": offset}])


SESSIONS = {
    "none": (0, -1), "new": (0, 0), "none, epoch 5": (0, 5),
    "unknown, epoch 1": (7, 1), "unknown, made anew": (7, 0), "unknown, ended": (7, -1),
}  # fmt: skip


IDS = (-(1 << 31), -268_435_455, -268_435_454, -1, 2_147_483_639, 2_147_483_640, (1 << 31) - 1)
SESSIONS |= {
    f"{session_id}, epoch {epoch}": (session_id, epoch) for session_id in IDS for epoch in (1, 0)
}


@FETCH.each("session", SESSIONS, since=7)
def session(asker: Asker, given: tuple[int, int]) -> Any:
    return fetch(asker, filled(asker.side), [{}], session_id=given[0], session_epoch=given[1])


@FETCH.question("an empty partition, waiting for the requested time")
def empty(asker: Asker) -> Any:
    return [
        fetch(asker, filled(asker.side), [{"partition": 1}], to=2, max_wait_ms=wait)
        for wait in (0, 80)
    ]


@FETCH.each(
    "as a tool that compares replicas, broker",
    {str(n): n for n in (1, 2, 3)},
    versions=(0, 4, 10, 11, 14),
)
def as_a_tool(asker: Asker, broker: int) -> Any:
    """Replica id -2 reads as consumers do."""
    return fetch(asker, filled(asker.side), [{}], to=broker, replica_id=-2)


@FETCH.question("what is not there ends no wait")
def waiting_beside_what_is_not_there(asker: Asker) -> Any:
    """The request waits for the other partitions; the missing one stands last in the answer."""
    began = time.monotonic()
    asked = [{"partition": 7}, {"fetch_offset": LAST + 1}]
    answer = fetch(asker, filled(asker.side), asked, max_wait_ms=200)
    return answer, time.monotonic() - began > 0.19


@FETCH.each("rack", {"unknown": "r9", "empty": ""}, since=11)
def rack(asker: Asker, name: str) -> Any:
    return fetch(asker, filled(asker.side), [{}], rack_id=name)


@FETCH.each("what old clients wrote", {"magic 0": 0, "magic 1": 1}, versions=(0, 1, 2, 3, 4, 11))
def old_formats(asker: Asker, magic: int) -> Any:
    """Message sets become batches in the log and message sets again for old readers."""
    topic = asker.topic(kind=f"old{magic}")
    records = b"".join(message(magic, n, value) for n, value in enumerate([b"a", None, b"c"]))
    written = asker.side.get(produce(topic, records), 2).responses[0].partition_responses[0]
    assert written.error_code == 0
    return [fetch(asker, topic, [{}]), fetch(asker, topic, [{"fetch_offset": 1}])]


def compressed(asker: Asker, codec: int) -> Any:
    topic = asker.topic(kind=f"zipped{codec}")
    data = batch([b"x" * 50, b"y" * 50, b"z" * 50], compression=codec)
    asker.side.ask(produce(topic, data), 9)
    return fetch(asker, topic, [{}])


FETCH.each("compressed", {"gzip": 1, "snappy": 2, "zstd": 4}, versions=(0, 2, 4, 9, 10, 17))(
    compressed
)
# Not to version 0 or 1, whose frames of lz4 have a checksum that only old Java reads (KAFKA-3160).
FETCH.each("compressed", {"lz4": 3}, versions=(2, 4, 17))(compressed)
