"""Fetch, ListOffsets, OffsetForLeaderEpoch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.records import NOW_MS, batch, message, produce
from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.legacy import iter_legacy
from urteil.broker.wire.messages import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
)

STRANGE_ID = UUID("12345678-1234-1234-1234-123456789abc")
LAST = 14
PADDING = b"\xff" * 8


@pytest.fixture(scope="module")
def filled(pair: Pair) -> str:
    """Partition 0: 15 records in 5 batches, led by 1; partition 1 empty, led by 2."""
    name = pair.name("filled")
    pair.both(lambda side: side.create(name, [(1, 2), (2, 1)]))
    for n in range(5):
        data = batch([b"%d-%d" % (n, m) for m in range(3)], at_ms=NOW_MS + 10_000 * n)
        pair.both(lambda side, d=data: side.ask(produce(name, d), 9))  # type: ignore[misc]
    return name


def fetch(
    side: Side,
    version: int,
    topic: str,
    partitions: Sequence[dict[str, Any]],
    *,
    to: int = 1,
    topic_id: UUID | None = None,
    **more: Any,
) -> Any:
    request = FetchRequest(
        **{"max_wait_ms": 50, "min_bytes": 1, "max_bytes": 1 << 20, **more},
        topics=[
            FetchRequest.FetchTopic(
                topic=topic,
                topic_id=topic_id or side.ids.get(topic, STRANGE_ID),
                partitions=[
                    FetchRequest.FetchPartition(
                        **{"partition": 0, "partition_max_bytes": 1 << 20, "fetch_offset": 0, **one}
                    )
                    for one in partitions
                ],
            )
        ],
    )
    answer = side.ask(request, version, to=to)
    if answer != CLOSED:
        if version < 4:
            _read_messages(answer)
        answer["session_id"] = "a session" if answer["session_id"] else "none"
    return answer


def _read_messages(answer: Any) -> None:
    """Message sets as messages, and whether the last one was cut: Apache Kafka pads converted
    ones to the size that the batches had, and compressors differ."""
    for topic in answer["responses"]:
        for partition in topic["partitions"]:
            data = partition["records"] or b""
            end = 0
            while end + 12 <= len(data) and data[end : end + 8] != PADDING:
                stop = end + 12 + int.from_bytes(data[end + 8 : end + 12], "big")
                if stop > len(data):
                    break
                end = stop
            read = iter_legacy(data[:end])
            found = [(r.offset, r.timestamp_ms, r.key, r.value) for r in read]
            padded = PADDING.startswith(data[end : end + 8])
            partition["records"] = [*found, "padded or whole" if padded else "cut"]


@pytest.mark.parametrize("version", range(18))
def test_fetch(pair: Pair, filled: str, version: int) -> None:
    """From every kind of place: start, within a batch, end; the bytes must be the same."""
    for offset in (0, 4, 12, LAST, LAST + 1):
        pair.same(lambda side, o=offset: fetch(side, version, filled, [{"fetch_offset": o}]))  # type: ignore[misc]


@pytest.mark.parametrize("version", [0, 3, 4, 11, 12, 13, 17])
@pytest.mark.parametrize("offset", [-1, -2, LAST + 2, 1 << 40])
def test_out_of_range(pair: Pair, filled: str, version: int, offset: int) -> None:
    pair.same(lambda side: fetch(side, version, filled, [{"fetch_offset": offset}]))


@pytest.mark.parametrize("version", [2, 3, 11, 17])
@pytest.mark.parametrize("limit", [0, 1, 100, 150, 500])
def test_limits(pair: Pair, filled: str, version: int, limit: int) -> None:
    """The first batch is whole from version 3 on; the limits are for partition and request."""
    pair.same(lambda side: fetch(side, version, filled, [{"partition_max_bytes": limit}]))
    if version >= 3:
        pair.same(lambda side: fetch(side, version, filled, [{}], max_bytes=limit))


@pytest.mark.parametrize("version", [0, 4, 9, 11, 12, 13, 15, 16, 17])
def test_wrong_places(pair: Pair, filled: str, version: int) -> None:
    pair.same(lambda side: fetch(side, version, filled, [{"partition": 7}]))
    pair.same(lambda side: fetch(side, version, filled, [{"partition": -1}]))
    pair.same(lambda side: fetch(side, version, filled, [{}], to=3))
    pair.same(lambda side: fetch(side, version, "never-there", [{}]))
    pair.same(lambda side: fetch(side, version, filled, [{}, {"partition": 1}]))
    if version >= 13:
        pair.same(lambda side: fetch(side, version, filled, [{}], topic_id=STRANGE_ID))
        pair.same(lambda side: fetch(side, version, filled, [{}], topic_id=UUID(int=0)))


def test_from_a_follower(pair: Pair, filled: str) -> None:
    """Consumers may read from a follower from version 11 on (KIP-392)."""
    for version in (9, 10, 11, 12, 17):
        pair.same(lambda side, v=version: fetch(side, v, filled, [{}], to=2))  # type: ignore[misc]


@pytest.mark.parametrize("version", [0, 4, 10, 11, 14])
def test_as_tools_that_compare_replicas(pair: Pair, filled: str, version: int) -> None:
    """Replica id -2 reads as consumers do."""
    for to in (1, 2, 3):
        pair.same(lambda side, t=to: fetch(side, version, filled, [{}], to=t, replica_id=-2))  # type: ignore[misc]


@pytest.mark.parametrize("version", [9, 11, 12, 17])
@pytest.mark.parametrize("epoch", [-1, 0, 1, 99])
def test_current_leader_epoch(pair: Pair, filled: str, version: int, epoch: int) -> None:
    pair.same(lambda side: fetch(side, version, filled, [{"current_leader_epoch": epoch}]))


@pytest.mark.parametrize("fetched", [(0, 4), (0, 40), (5, 4), (-1, 40)])
@pytest.mark.parametrize("version", [12, 17])
def test_last_fetched_epoch(
    pair: Pair, filled: str, version: int, fetched: tuple[int, int]
) -> None:
    one = {"last_fetched_epoch": fetched[0], "fetch_offset": fetched[1], "current_leader_epoch": 0}
    pair.same(lambda side: fetch(side, version, filled, [one]))


@pytest.mark.parametrize("isolation", [0, 1])
def test_isolation(pair: Pair, filled: str, isolation: int) -> None:
    for version in (4, 11, 17):
        pair.same(
            lambda side, v=version: fetch(side, v, filled, [{}], isolation_level=isolation)  # type: ignore[misc]
        )


@pytest.mark.parametrize("session", [(0, -1), (0, 0), (0, 5), (7, 1), (7, 0), (7, -1)])
def test_sessions_that_are_not_there(pair: Pair, filled: str, session: tuple[int, int]) -> None:
    more = {"session_id": session[0], "session_epoch": session[1]}
    pair.same(lambda side: fetch(side, 12, filled, [{}], **more))


def test_what_is_not_there_ends_no_wait(pair: Pair, filled: str) -> None:
    """The other partitions are waited for all the same, and it is told last."""

    def question(side: Side) -> Any:
        began = time.monotonic()
        asked = [{"partition": 7}, {"partition": 0, "fetch_offset": LAST + 1}]
        answer = fetch(side, 11, filled, asked, max_wait_ms=300)
        return answer, time.monotonic() - began > 0.25

    assert pair.same(question)[1]


def test_nothing_comes_in_time(pair: Pair, filled: str) -> None:
    """At the end of the log the answer waits for max_wait_ms and is empty."""
    pair.same(lambda side: fetch(side, 11, filled, [{"fetch_offset": LAST + 1}], max_wait_ms=120))
    pair.same(lambda side: fetch(side, 11, filled, [{"partition": 1}], to=2, max_wait_ms=0))


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 11])
@pytest.mark.parametrize("magic", [0, 1])
def test_what_old_clients_wrote(pair: Pair, version: int, magic: int) -> None:
    """Message sets become batches in the log and message sets again for old readers."""
    name = pair.name("old")
    pair.both(lambda side: side.create(name))
    records = b"".join(message(magic, n, value) for n, value in enumerate([b"a", None, b"c"]))
    pair.same(lambda side: side.ask(produce(name, records), 2))
    pair.same(lambda side: fetch(side, version, name, [{}]))
    pair.same(lambda side: fetch(side, version, name, [{"fetch_offset": 1}]))


@pytest.mark.parametrize("version", [0, 2])
def test_compressed_batches_for_old_readers(pair: Pair, version: int) -> None:
    name = pair.name("zipped")
    pair.both(lambda side: side.create(name))
    data = batch([b"x" * 50, b"y" * 50, b"z" * 50], compression=1)
    pair.same(lambda side: side.ask(produce(name, data), 9))
    pair.same(lambda side: fetch(side, version, name, [{}]))


# -- ListOffsets --------------------------------------------------------------------------------

TIMES = {
    "latest": -1,
    "earliest": -2,
    "largest": -3,
    "earliest local": -4,
    "latest tiered": -5,
    "unknown kind": -6,
    "zero": 0,
    "first": NOW_MS,
    "within a batch": NOW_MS + 1000,
    "between": NOW_MS + 1500,
    "last": NOW_MS + 42_000,
    "beyond": NOW_MS + 50_000,
}


def offsets(
    side: Side, version: int, topic: str, partitions: Sequence[dict[str, Any]], *, to: int = 1,
    **more: Any,
) -> Any:  # fmt: skip
    request = ListOffsetsRequest(
        **{"replica_id": -1, **more},
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        **{"partition_index": 0, "timestamp": -1, **one}
                    )
                    for one in partitions
                ],
            )
        ],
    )
    return side.ask(request, version, to=to)


@pytest.mark.parametrize("version", range(1, 10))
@pytest.mark.parametrize("time", TIMES)
def test_list_offsets(pair: Pair, filled: str, version: int, time: str) -> None:
    pair.same(lambda side: offsets(side, version, filled, [{"timestamp": TIMES[time]}]))
    pair.same(
        lambda side: offsets(
            side, version, filled, [{"partition_index": 1, "timestamp": TIMES[time]}], to=2
        )
    )


@pytest.mark.parametrize("version", [0, 1, 2, 4, 5, 9])
def test_list_offsets_wrongly(pair: Pair, filled: str, version: int) -> None:
    pair.same(lambda side: offsets(side, version, filled, [{"partition_index": 9}]))
    pair.same(lambda side: offsets(side, version, filled, [{}], to=3))
    pair.same(lambda side: offsets(side, version, filled, [{}], to=2))
    pair.same(lambda side: offsets(side, version, "never-there", [{}]))
    pair.same(lambda side: offsets(side, version, filled, [{}], isolation_level=1))
    pair.same(lambda side: offsets(side, version, filled, [{}], replica_id=-2, to=2))
    pair.same(lambda side: offsets(side, version, filled, [{}], replica_id=2))
    if version >= 1:
        pair.same(lambda side: offsets(side, version, filled, [{}, {"timestamp": -2}]))
    for epoch in (0, 1, -1):
        pair.same(
            lambda side, e=epoch: offsets(side, version, filled, [{"current_leader_epoch": e}])  # type: ignore[misc]
        )


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_old_lists_of_offsets(pair: Pair, filled: str, count: int) -> None:
    for at_ms in (-1, -2, -3, 0, NOW_MS + 1_000_000):
        one = {"timestamp": at_ms, "max_num_offsets": count}
        pair.same(lambda side, o=one: offsets(side, 0, filled, [o]))  # type: ignore[misc]


# -- OffsetForLeaderEpoch -----------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("epoch", [-1, 0, 1, 9])
@pytest.mark.parametrize("current", [-1, 0, 1])
def test_offset_for_leader_epoch(
    pair: Pair, filled: str, version: int, epoch: int, current: int
) -> None:
    def asked(topic: str, partition: int, to: int) -> Any:
        request = OffsetForLeaderEpochRequest(
            replica_id=-1,
            topics=[
                OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                            partition=partition, leader_epoch=epoch, current_leader_epoch=current
                        )
                    ],
                )
            ],
        )
        return lambda side: side.ask(request, version, to=to)

    pair.same(asked(filled, 0, 1))
    pair.same(asked(filled, 1, 2))
    if epoch == 0:
        pair.same(asked(filled, 0, 2))
        pair.same(asked(filled, 0, 3))
        pair.same(asked(filled, 9, 1))
        pair.same(asked("never-there", 0, 1))
