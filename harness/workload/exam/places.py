"""Questions about where replicas are, who leads them, and how much they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)

from urteil.harness.workload.exam.question import (
    Brokers,
    Question,
    awaited,
    by_all,
    check,
    name_of,
    names,
)
from urteil.harness.workload.exam.records import batch, written
from urteil.harness.workload.exam.topics import placed

Told = tuple[int, str]
PREFERRED = 0


def _reassign(brokers: Brokers, topic: str, replicas: Sequence[int] | None) -> int:
    """The error; no replicas cancel what is under way."""
    kinds = AlterPartitionReassignmentsRequest.ReassignableTopic
    part = kinds.ReassignablePartition(
        partition_index=0, replicas=None if replicas is None else list(replicas)
    )
    asked = kinds(name=topic, partitions=[part])
    told = brokers.ask(
        brokers.controller, AlterPartitionReassignmentsRequest[0](timeout_ms=5_000, topics=[asked])
    )
    check("AlterPartitionReassignments", told.error_code)
    return int(told.responses[0].partitions[0].error_code)


def _moving(brokers: Brokers, topic: str) -> str:
    kinds = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    request = ListPartitionReassignmentsRequest[0](
        timeout_ms=5_000, topics=[kinds(name=topic, partition_indexes=[0])]
    )
    told = brokers.ask(brokers.controller, request)
    check("ListPartitionReassignments", told.error_code)
    return "none moves" if not told.topics else str(told.topics)


def _moved(brokers: Brokers, name: str) -> Told:
    """To other replicas, which have its records in the end; there is nothing to cancel then."""
    first, second, third, *_ = brokers.nodes
    brokers.create(name, [[first, second]])
    written(brokers, first, name, batch(b"0", b"1"))
    check("AlterPartitionReassignments", _reassign(brokers, name, [third, second]))
    moving = awaited(lambda: _moving(brokers, name), "none moves")
    nothing = name_of(_reassign(brokers, name, None))
    unknown = name_of(_reassign(brokers, name, [second, 99]))
    node, told = placed(brokers, name, [[third, second]])
    return node, f"{told}, {moving}, {nothing}, {unknown}"


def _elect(brokers: Brokers, topic: str) -> int:
    kinds = ElectLeadersRequest.TopicPartitions
    request = ElectLeadersRequest[1](
        election_type=PREFERRED, topic_partitions=[kinds(topic=topic, partitions=[0])],
        timeout_ms=5_000,
    )  # fmt: skip
    told = brokers.ask(brokers.controller, request)
    check("ElectLeaders", told.error_code)
    return int(told.replica_election_results[0].partition_result[0].error_code)


def _elected(brokers: Brokers, name: str) -> Told:
    """Who comes first among the replicas leads once that is asked for, and not before."""
    first, second, *_ = brokers.nodes
    brokers.create(name, [[first, second]])
    check("AlterPartitionReassignments", _reassign(brokers, name, [second, first]))
    awaited(lambda: _moving(brokers, name), "none moves")
    before = brokers.metadata(brokers.controller, name).partitions[0].leader_id == first
    errors = [_elect(brokers, name), _elect(brokers, name), _elect(brokers, f"{name}-never")]
    node, told = placed(brokers, name, [[second, first]])
    return node, f"{'as before' if before else 'at once'}, {names(errors)}, {told}"


def _held(brokers: Brokers, name: str) -> Told:
    """Each replica says where it is, and how large; who is none says nothing."""
    first, second, third, *_ = brokers.nodes
    brokers.create(name, [[first, second]])
    sent = batch(b"0", b"1")
    written(brokers, first, name, sent, sent)

    def told(node: int) -> str:
        kinds = DescribeLogDirsRequest.DescribableLogDirTopic
        request = DescribeLogDirsRequest[1](topics=[kinds(topic=name, partitions=[0])])
        found: list[Any] = [
            part
            for folder in brokers.ask(node, request).results
            for topic in folder.topics
            for part in topic.partitions
        ]
        wanted = [] if node == third else [2 * len(sent)]
        held = [one.partition_size for one in found if not one.is_future_key]
        late = [one.offset_lag for one in found if one.offset_lag]
        return HELD if held == wanted and not late else f"{held}, {late} behind, for {wanted}"

    return by_all(brokers, told, HELD)


HELD = "all of it"

PLACES = (
    Question(
        about="a partition that moves to another broker; a move that is not, and one to nobody",
        answer="as asked for, none moves, NoReassignmentInProgress, InvalidReplicationAssignment",
        ask=_moved,
    ),
    Question(
        about="an election of the preferred leader, one more, and one of no partition",
        answer="as before, No, ElectionNotNeeded, UnknownTopicOrPartition, as asked for",
        ask=_elected,
    ),
    Question(about="what DescribeLogDirs tells of each replica", answer=HELD, ask=_held),
)
