"""AlterPartitionReassignments and ListPartitionReassignments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import filled, spread
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
)

ALTER = Subject("AlterPartitionReassignments", ApiKey.ALTER_PARTITION_REASSIGNMENTS)
LIST = Subject("ListPartitionReassignments", ApiKey.LIST_PARTITION_REASSIGNMENTS)
Topic = AlterPartitionReassignmentsRequest.ReassignableTopic
Partition = AlterPartitionReassignmentsRequest.ReassignablePartition
Listed = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics


def moved(*moves: tuple[str, int, Sequence[int] | None]) -> AlterPartitionReassignmentsRequest:
    topics = [
        Topic(name=name, partitions=[Partition(partition_index=index, replicas=replicas)])
        for name, index, replicas in moves
    ]
    return AlterPartitionReassignmentsRequest(timeout_ms=10_000, topics=topics)


MOVES: dict[str, Sequence[int]] = {
    "to another broker": (2,),
    "to more": (1, 2, 3),
    "to more, led by another": (3, 1),
    "to where it is": (1,),
}


@ALTER.each("moved", MOVES)
def move(asker: Asker, replicas: Sequence[int]) -> Any:
    """The answer, and where the partition is when all is done."""
    topic = asker.topic(kind=f"moved{''.join(map(str, replicas))}")
    answer = asker.ask_controller(moved((topic, 0, replicas)))
    query = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])

    def done() -> bool:
        partition = asker.side.get(query, 7).topics[0].partitions[0]
        return list(partition.replica_nodes) == list(replicas) and set(partition.isr_nodes) == set(
            replicas
        )

    asker.side.until(done)
    partition = asker.side.ask(query, 7)["topics"][0]["partitions"][0]
    left = asker.ask_controller(moved((topic, 0, None)))
    return [answer, partition["replica_nodes"], sorted(partition["isr_nodes"]), left]


WRONG: dict[str, Any] = {
    "unknown topic": lambda name: [("never-there", 0, (1,))],
    "unknown partition": lambda name: [(name, 9, (1, 2))],
    "partition -1": lambda name: [(name, -1, (1, 2))],
    "unknown broker": lambda name: [(name, 0, (1, 9))],
    "broker -1": lambda name: [(name, 0, (1, -1))],
    "a broker twice": lambda name: [(name, 0, (1, 1))],
    "no replicas": lambda name: [(name, 0, ())],
    "bad name": lambda name: [("a b", 0, (1,))],
    "empty name": lambda name: [("", 0, (1,))],
    "cancelled though none goes on": lambda name: [(name, 0, None)],
    "cancelled, unknown topic": lambda name: [("never-there", 0, None)],
    "good and bad": lambda name: [(name, 0, (1, 9)), ("never-there", 0, (1,))],
    "a topic twice": lambda name: [(name, 0, (1, 9)), (name, 1, (1, 9))],
    "a partition twice": lambda name: [(name, 0, (1, 9)), (name, 0, (1, 1))],
    "nothing": lambda name: [],
}


@ALTER.each("wrong", WRONG)
def wrong(asker: Asker, moves: Any) -> Any:
    return asker.ask_controller(moved(*moves(spread(asker.side))))


def listed(*partitions_by_topic: tuple[str, Sequence[int]]) -> ListPartitionReassignmentsRequest:
    topics = [
        Listed(name=name, partition_indexes=list(indexes)) for name, indexes in partitions_by_topic
    ]
    return ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=topics)


ASKED: dict[str, Any] = {
    "none goes on": lambda name: [(name, [0, 1])],
    "unknown topic": lambda name: [("never-there", [0])],
    "unknown partition": lambda name: [(name, [9])],
    "no partitions": lambda name: [(name, [])],
    "a partition twice": lambda name: [(name, [0, 0])],
    "nothing": lambda name: [],
}


@LIST.each("of", ASKED)
def list_some(asker: Asker, topics: Any) -> Any:
    return asker.ask_controller(listed(*topics(filled(asker.side))))


@LIST.question("of all, none going on")
def list_all(asker: Asker) -> Any:
    return asker.ask_controller(ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None))


@LIST.question("asked of another broker than the controller")
def list_elsewhere(asker: Asker) -> Any:
    return asker.ask(listed(("never-there", [0])), to=asker.side.controller() % 3 + 1)


@ALTER.question("asked of another broker than the controller")
def elsewhere(asker: Asker) -> Any:
    return asker.ask(moved(("never-there", 0, (1,))), to=asker.side.controller() % 3 + 1)
