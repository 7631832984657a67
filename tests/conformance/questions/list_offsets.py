"""ListOffsets: by every kind of time, and from the wrong places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import filled
from tests.conformance.records import NOW_MS
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import ListOffsetsRequest

OFFSETS = Subject("ListOffsets", ApiKey.LIST_OFFSETS)

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
    asker: Asker, topic: str, partitions: Sequence[dict[str, Any]], *, to: int = 1, **more: Any
) -> Any:
    request = ListOffsetsRequest(
        **{"replica_id": -1, **more},
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        **{"partition_index": 0, "timestamp": -1, **partition}
                    )
                    for partition in partitions
                ],
            )
        ],
    )
    return asker.ask(request, to=to)


@OFFSETS.each("time", TIMES, versions=range(1, 10))
def by_time(asker: Asker, time: int) -> Any:
    return offsets(asker, filled(asker.side), [{"timestamp": time}])


@OFFSETS.each("time in an empty partition", TIMES, since=1)
def by_time_in_an_empty_one(asker: Asker, time: int) -> Any:
    return offsets(asker, filled(asker.side), [{"partition_index": 1, "timestamp": time}], to=2)


PLACES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "unknown partition": ({"partition_index": 9}, {}),
    "partition -1": ({"partition_index": -1}, {}),
    "no replica there": ({}, {"to": 3}),
    "a follower": ({}, {"to": 2}),
    "a follower, for debugging": ({}, {"to": 2, "replica_id": -2}),
    "as a follower": ({}, {"replica_id": 2}),
    "as a stranger": ({}, {"replica_id": 3}),
    "read committed": ({}, {"isolation_level": 1}),
    "isolation 7": ({}, {"isolation_level": 7}),
    "epoch 0": ({"current_leader_epoch": 0}, {}),
    "epoch 1": ({"current_leader_epoch": 1}, {}),
    "epoch -1": ({"current_leader_epoch": -1}, {}),
}


@OFFSETS.each("place", PLACES, versions=(0, 1, 2, 4, 5, 9))
def places(asker: Asker, place: tuple[dict[str, Any], dict[str, Any]]) -> Any:
    return offsets(asker, filled(asker.side), [place[0]], **place[1])


@OFFSETS.question("an unknown topic")
def unknown_topic(asker: Asker) -> Any:
    return offsets(asker, "never-there", [{}])


@OFFSETS.question("a partition twice", since=1)
def twice(asker: Asker) -> Any:
    return offsets(asker, filled(asker.side), [{}, {"timestamp": -2}])


OLD = {"latest": -1, "earliest": -2, "-3": -3, "zero": 0, "far ahead": NOW_MS + 1_000_000}


@OFFSETS.each("lists of version 0, time", OLD, versions=(0,))
def old_lists(asker: Asker, time: int) -> Any:
    return [
        offsets(asker, filled(asker.side), [{"timestamp": time, "max_num_offsets": count}])
        for count in (0, 1, 2, 5)
    ]
