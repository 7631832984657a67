"""OffsetForLeaderEpoch: where an epoch ends, as leader, follower and stranger see it."""

from __future__ import annotations

from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import filled
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import OffsetForLeaderEpochRequest

EPOCHS = Subject("OffsetForLeaderEpoch", ApiKey.OFFSET_FOR_LEADER_EPOCH)
Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
Partition = OffsetForLeaderEpochRequest.OffsetForLeaderPartition


def end_of(
    asker: Asker, topic: str, epoch: int, current: int, partition: int = 0, *, to: int = 1,
    replica_id: int = -1,
) -> Any:  # fmt: skip
    asked = Partition(partition=partition, leader_epoch=epoch, current_leader_epoch=current)
    topics = [Topic(topic=topic, partitions=[asked])]
    return asker.ask(OffsetForLeaderEpochRequest(replica_id=replica_id, topics=topics), to=to)


PAIRS = {
    f"{epoch}, current epoch {current}": (epoch, current)
    for epoch in (-2, -1, 0, 1, 9)
    for current in (-1, 0, 1)
}


@EPOCHS.each("epoch", PAIRS, versions=range(5))
def of_an_epoch(asker: Asker, pair: tuple[int, int]) -> Any:
    return end_of(asker, filled(asker.side), *pair)


@EPOCHS.each("epoch of an empty partition", PAIRS)
def of_an_empty_partition(asker: Asker, pair: tuple[int, int]) -> Any:
    return end_of(asker, filled(asker.side), *pair, partition=1, to=2)


PLACES: dict[str, dict[str, Any]] = {
    "a follower": {"to": 2},
    "no replica there": {"to": 3},
    "unknown partition": {"partition": 9},
    "partition -1": {"partition": -1},
    "as a follower": {"replica_id": 2},
    "as a stranger": {"replica_id": 3},
    "for debugging": {"replica_id": -2},
    "for debugging from a follower": {"replica_id": -2, "to": 2},
}


@EPOCHS.each("place", PLACES)
def places(asker: Asker, place: dict[str, Any]) -> Any:
    return [end_of(asker, filled(asker.side), 0, current, **place) for current in (-1, 0, 1)]


@EPOCHS.question("an unknown topic")
def unknown_topic(asker: Asker) -> Any:
    return end_of(asker, "never-there", 0, -1)


@EPOCHS.question("a partition twice")
def twice(asker: Asker) -> Any:
    asked = [Partition(partition=0, leader_epoch=epoch) for epoch in (0, 5)]
    return asker.ask(
        OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[Topic(topic=filled(asker.side), partitions=asked)]
        )
    )
