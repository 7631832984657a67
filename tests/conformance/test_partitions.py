"""CreatePartitions, ElectLeaders, AlterPartitionReassignments, ListPartitionReassignments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.messages import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
)

Grown = CreatePartitionsRequest.CreatePartitionsTopic
Replicas = CreatePartitionsRequest.CreatePartitionsAssignment
Elected = ElectLeadersRequest.TopicPartitions
PREFERRED, UNCLEAN = 0, 1
Slot = tuple[str, int]


def other_broker(side: Side) -> int:
    """A broker that is not the controller."""
    return side.controller() % 3 + 1


def grow_request(name: str, count: int, *replicas: Sequence[int]) -> Any:
    assignments = [Replicas(broker_ids=list(ids)) for ids in replicas]
    return Grown(name=name, count=count, assignments=assignments or None)


def grow(
    side: Side,
    topics: Sequence[Any],
    version: int,
    *,
    to: int | None = None,
    timeout_ms: int = 10_000,
    validate_only: bool = False,
) -> Any:
    request = CreatePartitionsRequest(
        topics=topics, timeout_ms=timeout_ms, validate_only=validate_only
    )
    answer = side.ask(request, version, to=to or side.controller())
    if answer != CLOSED:
        answer["results"].sort(key=lambda topic: topic["name"])
    return answer


def partitions(side: Side, topic: str, *, to: int | None = None) -> Any:
    """The topic in Metadata, partitions in order."""
    request = MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )
    (answer,) = side.ask(request, 12, to=to or side.controller())["topics"]
    answer["partitions"].sort(key=lambda partition: partition["partition_index"])
    for partition in answer["partitions"]:
        partition["isr_nodes"].sort()
    return answer


@pytest.mark.parametrize("replicas", [[(1, 2, 3), (2, 2, 3)], [(1,), (2, 3, 1)], [(1, 2, 3), ()]])
def test_wrong_replicas_are_rejected_in_the_same_words(
    pair: Pair, replicas: Sequence[Sequence[int]]
) -> None:
    topic = pair.name("worded")
    pair.run_on_both(lambda side: side.create(topic))

    def ask(side: Side) -> Any:
        count = len(partitions(side, topic)["partitions"]) + len(replicas)
        answer = grow(side, [grow_request(topic, count, *replicas)], 3)
        return [str(row["error_message"]) for row in answer["results"]]

    assert "partition" in pair.assert_same(ask)[0]


@pytest.mark.parametrize("version", [0, 3])
def test_added_partitions_get_the_same_replicas(pair: Pair, version: int) -> None:
    """Counts go on from the leader of partition 0, so that even the replicas are the same."""
    first, second = pair.name("grown"), pair.name("grown")
    pair.run_on_both(lambda side: side.create(first, [(2, 3), (3, 1)]))
    pair.run_on_both(lambda side: side.create(second, [(3, 1, 2)]))

    def grow_both(side: Side) -> Any:
        topics = [grow_request(first, 9), grow_request(second, 3, (1, 2, 3), (2, 3, 1))]
        return grow(side, topics, version)

    pair.assert_same(lambda side: grow(side, [grow_request(first, 4)], version, validate_only=True))
    pair.assert_same(grow_both)
    pair.assert_same(grow_both)
    pair.assert_same(lambda side: partitions(side, first))
    pair.assert_same(lambda side: partitions(side, second))


REFUSED: Mapping[str, Sequence[tuple[int, Sequence[Sequence[int]]]]] = {
    "fewer": [(1, ())],
    "none": [(0, ())],
    "minus one": [(-1, ())],
    "as many": [(2, ())],
    "as many, assigned": [(2, [(1, 2)])],
    "too few assignments": [(4, [(1, 2)])],
    "too many assignments": [(3, [(1, 2), (2, 3)])],
    "unknown broker": [(3, [(1, 9)])],
    "unknown broker, too few": [(5, [(1, 9)])],
    "a broker twice": [(3, [(1, 1)])],
    "no brokers": [(3, [()])],
    "too few replicas": [(3, [(1,)])],
    "too many replicas": [(3, [(1, 2, 3)])],
    "uneven replicas": [(4, [(1, 2), (1, 2, 3)])],
    "twice": [(3, ()), (4, ())],
    "twice, one wrong": [(3, ()), (1, ())],
}


@pytest.mark.parametrize("version", [0, 3])
def test_wrong_partition_counts_are_rejected_alike(pair: Pair, version: int) -> None:
    name = pair.name("refused")
    pair.run_on_both(lambda side: side.create(name, [(1, 2), (2, 3)]))

    def ask(side: Side) -> Any:
        answers: dict[str, Any] = {
            about: grow(
                side, [grow_request(name, count, *replicas) for count, replicas in asked], version
            )
            for about, asked in REFUSED.items()
        }
        answers["unknown topic"] = grow(
            side,
            [grow_request("never-there", 3), grow_request(name, 3)],
            version,
            validate_only=True,
        )
        answers["bad name"] = grow(side, [grow_request("a b", 3)], version)
        answers["no name"] = grow(side, [grow_request("", 3)], version)
        answers["nothing"] = grow(side, [], version)
        answers["elsewhere"] = grow(side, [grow_request(name, 3)], version, to=other_broker(side))
        answers["no time"] = grow(side, [grow_request(name, 3)], version, timeout_ms=0)
        answers["no time for nothing"] = grow(side, [grow_request(name, 2)], version, timeout_ms=-1)
        return answers

    pair.assert_same(ask)
    pair.run_on_both(
        lambda side: side.until(lambda: len(partitions(side, name)["partitions"]) == 3)
    )


def elect(
    side: Side,
    asked: Mapping[str, Sequence[int]] | None,
    version: int,
    kind: int = PREFERRED,
    *,
    to: int | None = None,
    timeout_ms: int = 10_000,
    only: str | None = None,
) -> Any:
    """`only` leaves out of the answer what is not this topic's."""
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=None
        if asked is None
        else [Elected(topic=topic, partitions=list(ones)) for topic, ones in asked.items()],
        timeout_ms=timeout_ms,
    )
    answer = side.ask(request, version, to=to or side.controller())
    results = answer["replica_election_results"]
    results[:] = [result for result in results if only in (None, result["topic"])]
    results.sort(key=lambda result: result["topic"])
    for result in results:
        result["partition_result"].sort(key=lambda result: result["partition_id"])
    return answer


def alter(side: Side, asked: Mapping[Slot, Sequence[int] | None], *, to: int | None = None) -> Any:
    topics: dict[str, list[Any]] = {}
    for (topic, partition), replicas in asked.items():
        topics.setdefault(topic, []).append(
            AlterPartitionReassignmentsRequest.ReassignablePartition(
                partition_index=partition, replicas=replicas
            )
        )
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=10_000,
        topics=[
            AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=ones)
            for topic, ones in topics.items()
        ],
    )
    answer = side.ask(request, 0, to=to or side.controller())
    answer["responses"].sort(key=lambda row: row["name"])
    for response in answer["responses"]:
        response["partitions"].sort(key=lambda result: result["partition_index"])
    return answer


def list_reassignments(
    side: Side, asked: Mapping[str, Sequence[int]] | None, *, to: int | None = None
) -> Any:
    request = ListPartitionReassignmentsRequest(
        timeout_ms=10_000,
        topics=None
        if asked is None
        else [
            ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
                name=topic, partition_indexes=list(ones)
            )
            for topic, ones in asked.items()
        ],
    )
    return side.ask(request, 0, to=to or side.controller())


def replicas_are(side: Side, topic: str, *replicas: Sequence[int]) -> bool:
    """Whether the controller's broker knows of these replicas, all in sync, in the leader epochs
    that ZooKeeper has: a controller that removes a replica raises the epoch more than once."""
    rows = partitions(side, topic)["partitions"]
    return (
        [partition["replica_nodes"] for partition in rows] == [list(ids) for ids in replicas]
        and all(partition["isr_nodes"] == sorted(partition["replica_nodes"]) for partition in rows)
        and [partition["leader_epoch"] for partition in rows] == leader_epochs(side, topic)
    )


def leader_epochs(side: Side, topic: str) -> list[int]:
    """Of all partitions, as ZooKeeper has them."""
    folder = f"/brokers/topics/{topic}/partitions"
    with side.znodes() as zk:
        numbers = sorted(map(int, zk.get_children(folder)))
        states = [json.loads(zk.get(f"{folder}/{number}/state")[0]) for number in numbers]
    return [state["leader_epoch"] for state in states]


@pytest.mark.parametrize("version", [0, 2])
def test_preferred_elections_are_answered_alike(pair: Pair, version: int) -> None:
    name = pair.name("elected")
    pair.run_on_both(lambda side: side.create(name, [(1, 2, 3), (2, 3, 1), (3, 1, 2)]))
    turned = {(name, 0): (2, 3, 1), (name, 1): (3, 1, 2), (name, 2): (3, 2, 1)}
    pair.assert_same(lambda side: alter(side, turned))
    pair.run_on_both(
        lambda side: side.until(lambda: replicas_are(side, name, (2, 3, 1), (3, 1, 2), (3, 2, 1)))
    )
    pair.assert_same(lambda side: partitions(side, name))
    pair.assert_same(lambda side: elect(side, {name: [0, 2, 7], "never-there": [0]}, version))
    pair.assert_same(lambda side: partitions(side, name))
    pair.assert_same(lambda side: elect(side, None, version, only=name))
    pair.assert_same(lambda side: partitions(side, name))
    pair.assert_same(lambda side: elect(side, None, version, only=name))


@pytest.mark.parametrize("version", [1, 2])
def test_impossible_elections_are_answered_alike(pair: Pair, version: int) -> None:
    name = pair.name("unelected")
    pair.run_on_both(lambda side: side.create(name, [(1, 2, 3)]))
    pair.assert_same(lambda side: elect(side, {name: [0, 1]}, version, UNCLEAN))
    pair.assert_same(lambda side: elect(side, {name: [0, 0]}, version, UNCLEAN))
    pair.assert_same(lambda side: elect(side, {}, version, UNCLEAN))
    pair.assert_same(lambda side: elect(side, {name: [0]}, version, 7))
    pair.assert_same(lambda side: elect(side, {name: [0]}, version, -1))
    pair.assert_same(lambda side: elect(side, {name: [0]}, version, to=other_broker(side)))
    pair.assert_same(
        lambda side: elect(side, None, version, UNCLEAN, to=other_broker(side), only=name)
    )


def test_reassignments_are_answered_alike(pair: Pair) -> None:
    """More, fewer, others: every answer, and the epochs that clients can see."""
    name = pair.name("moved")
    pair.run_on_both(lambda side: side.create(name, [(1, 2)]))
    for target in ((3, 1), (1, 2, 3), (2,), (3,), (1, 2), (2, 1), (2, 1)):

        def become(side: Side, target: Sequence[int] = target) -> Any:
            answer = alter(side, {(name, 0): target})
            side.until(lambda: replicas_are(side, name, target))
            side.until(lambda: list_reassignments(side, {name: [0]})["topics"] == [])
            return answer

        pair.assert_same(become)
        pair.assert_same(lambda side: partitions(side, name))


def test_wrong_reassignments_are_rejected_alike(pair: Pair) -> None:
    name = pair.name("unmoved")
    pair.run_on_both(lambda side: side.create(name, [(1, 2), (2, 3)]))

    def ask(side: Side) -> Any:
        return {
            "none under way": alter(side, {(name, 0): None, ("never-there", 0): None}),
            "no replicas": alter(side, {(name, 0): ()}),
            "a replica twice": alter(side, {(name, 0): (1, 1)}),
            "below zero": alter(side, {(name, 0): (1, -1)}),
            "unknown broker": alter(side, {(name, 0): (1, 9)}),
            "unknown partition": alter(side, {(name, 7): (1,), (name, -1): (1,)}),
            "unknown topic": alter(side, {("never-there", 0): (1,), ("a b", 0): (1,)}),
            "unknown topic and broker": alter(side, {("never-there", 0): (9,)}),
            "nothing": alter(side, {}),
            "elsewhere": alter(side, {(name, 0): (2, 1)}, to=other_broker(side)),
            "one wrong": alter(side, {(name, 0): (1, 1), (name, 1): (2, 3)}),
            "nothing listed": list_reassignments(side, {name: [0, 1, 7], "never-there": [0]}),
            "none listed": list_reassignments(side, {}),
            "listed elsewhere": list_reassignments(side, None, to=other_broker(side)),
        }

    pair.assert_same(ask)


def test_reassignments_under_way_are_listed_alike(pair: Pair) -> None:
    """To broker 9, which is nowhere: begun by the node of old tools, since the API refuses it."""
    name = pair.name("moving")
    pair.run_on_both(lambda side: side.create(name, [(1, 2), (2, 3)]))

    def begin(side: Side) -> Any:
        asked = {"topic": name, "partition": 0, "replicas": [3, 9]}
        with side.znodes() as zk:
            data = json.dumps({"version": 1, "partitions": [asked]})
            zk.create("/admin/reassign_partitions", data.encode())
        side.until(lambda: list_reassignments(side, {name: [0]})["topics"] != [])
        side.until(lambda: partitions(side, name)["partitions"][0]["isr_nodes"] == [1, 2, 3])
        return {
            "listed": list_reassignments(side, None),
            "some listed": list_reassignments(side, {name: [0, 1, 7], "never-there": [0]}),
            "partitions": partitions(side, name),
            "grown": grow(side, [grow_request(name, 3)], 3),
        }

    def node(side: Side) -> str:
        with side.znodes() as zk:
            znode = zk.exists("/admin/reassign_partitions")
        return "there" if znode else "gone"

    def cancel(side: Side) -> Any:
        return {
            "to a dead broker": alter(side, {(name, 0): (2, 9)}),
            "listed": list_reassignments(side, {name: [0]}),
            "node": node(side),
            "cancelled": alter(side, {(name, 0): None, (name, 1): None}),
            "node after it": node(side),
            "again": alter(side, {(name, 0): None}),
            "none listed": list_reassignments(side, {name: [0]}),
        }

    def replace(side: Side) -> Any:
        answer = alter(side, {(name, 0): (3, 1)})
        # brokers hear of the end before the controller has done with it
        side.until(lambda: list_reassignments(side, {name: [0]})["topics"] == [])
        side.until(lambda: replicas_are(side, name, (3, 1), (2, 3)))
        return answer, node(side), list_reassignments(side, {name: [0]}), partitions(side, name)

    pair.assert_same(begin)
    pair.assert_same(cancel)
    pair.run_on_both(lambda side: side.until(lambda: replicas_are(side, name, (1, 2), (2, 3))))
    pair.assert_same(lambda side: partitions(side, name))
    pair.assert_same(begin)
    pair.assert_same(replace)
