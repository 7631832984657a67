"""Clusters of two brokers, the second of which is down: coordinators whose internal topics are
below min.insync.replicas, and a replica that is moved meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conformance.configs import TOPIC, change
from tests.conformance.groups import Assignment, beat, commit, join, member_of, offset_fetch, sync
from tests.conformance.guarded import Guarded, GuardedPair, guarded_pair
from tests.conformance.side import Side
from tests.conformance.test_partitions import alter, replicas_are
from tests.conformance.transactions import add, begin, end, init_request
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DescribeLogDirsRequest,
    DescribeTransactionsRequest,
    MetadataRequest,
    OffsetDeleteRequest,
)

pytestmark = pytest.mark.thorough

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
BOX = {"group_instance_id": "box"}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedPair]:
    """The second broker of each goes and comes."""
    with guarded_pair(tmp_path_factory.mktemp("lacking"), brokers=2) as both:
        both.run_on_both(_create)
        yield both


def _create(guarded_side: Guarded) -> None:
    guarded_side.admin.create("there", ((1,), (1,)))
    for topic in (OFFSETS, TRANSACTIONS):
        guarded_side.admin.create(topic, ((1, 2),), {"cleanup.policy": "compact"})


def test_coordinator_below_min_isr_rejects_writes(two: GuardedPair) -> None:
    """Requests that must store records fail; deletions succeed."""
    answers = two.assert_same(_group_answers)
    assert [answer["error_code"] for answer in answers[2:5]] == [
        "COORDINATOR_NOT_AVAILABLE", "NONE", "COORDINATOR_NOT_AVAILABLE",
    ]  # fmt: skip
    gone, less = (answer["topics"] for answer in answers[-2:])
    assert gone == []
    assert [topic["partition_index"] for topic in less[0]["partitions"]] == [1]


def _group_answers(guarded_side: Guarded) -> list[Any]:
    side, gone, less, group, other = guarded_side.admin, "gone", "less", "lacking", "lacking-too"
    side.coordinator(group)
    old, generation = member_of(side, group, instance="box", at=1)
    given = [Assignment(member_id=old, assignment=b"all")]
    side.get(sync(group, old, generation, assignments=given, **BOX), 3)
    newer, newest = member_of(side, other, instance=None, at=1)
    for name in (gone, less):
        side.get(commit(name, [("there", 0, 1), ("there", 1, 1)]), 2)

    def stored() -> bool:
        answer = side.get(commit("heard", [("there", 0, 1)]), 2)
        return bool(answer.topics[0].partitions[0].error_code == ErrorCode.NONE)

    with _below_min_isr(guarded_side, OFFSETS, stored):
        answers = [side.ask(commit(gone, [("there", 0, 7)]), at) for at in (2, 8)]
        answers.append(side.ask(join(group, **BOX), 9))
        answers.append(side.ask(beat(group, old, generation, **BOX), 3))
        given = [Assignment(member_id=newer, assignment=b"all")]
        answers.append(side.ask(sync(other, newer, newest, assignments=given), 3))
        answers.append(side.ask(beat(other, newer, newest), 3))
        answers.append(side.ask(DeleteGroupsRequest(groups_names=[gone]), 2))
        answers.append(side.ask(_deletion(less, "there"), 0))
        answers += [side.ask(offset_fetch(2, (name, None)), 2) for name in (gone, less)]
    return answers + [side.ask(offset_fetch(2, (name, None)), 2) for name in (gone, less)]


def _deletion(group: str, topic: str) -> OffsetDeleteRequest:
    kind = OffsetDeleteRequest.OffsetDeleteRequestTopic
    offset_delete_request_partition = OffsetDeleteRequest.OffsetDeleteRequestPartition(
        partition_index=0
    )
    return OffsetDeleteRequest(
        group_id=group, topics=[kind(name=topic, partitions=[offset_delete_request_partition])]
    )


def test_transaction_steps_below_min_isr_fail_and_can_be_repeated(two: GuardedPair) -> None:
    """No step takes effect; each can be repeated."""
    answers = two.assert_same(_transaction_answers)
    refused = [*answers[:4], answers[6], *answers[10:12]]
    assert {answer["error_code"] for answer in refused} == {"COORDINATOR_NOT_AVAILABLE"}
    assert answers[-4:-1] == [2, 1, 0]  # the fencing epoch was taken once


def _transaction_answers(guarded_side: Guarded) -> list[Any]:
    side = guarded_side.admin
    held, fenced, idle = (begin(side, name) for name in ("held", "fenced", "idle"))
    for txn in (held, fenced):
        add(side, txn, ("there", 0))
        side.get(txn.produce("there", txn.records(0)), 9)

    def stored() -> bool:
        return bool(side.get(init_request("heard"), 4).error_code == ErrorCode.NONE)

    def known(*names: str) -> list[Any]:
        asked = DescribeTransactionsRequest(transactional_ids=names)
        return [
            {name: value for name, value in state.items() if "time" not in name}
            for state in side.ask(asked, 0)["transaction_states"]
        ]

    with _below_min_isr(guarded_side, TRANSACTIONS, stored):
        answers = [side.ask(init_request(name), 4) for name in ("new", "idle", "fenced", "fenced")]
        answers += [side.ask(held.add(place), 3) for place in (("there", 0), ("there", 1))]
        answers.append(side.ask(held.add_offsets("a group"), 3))
        answers.append(side.ask(idle.add(("there", 0)), 3))
        answers.append(side.ask(held.produce("there", held.records(1)), 9))
        answers.append(side.ask(fenced.produce("there", fenced.records(1)), 9))
        answers += [side.ask(held.end(commit=True), 3) for _ in range(2)]
        answers.append(known("new", "held", "fenced", "idle"))
    end(side, held, commit=True)
    begun = [begin(side, name) for name in ("fenced", "idle", "new")]
    return [*answers, *(txn.epoch for txn in begun), known("held", "fenced", "idle")]


def test_broker_that_was_down_keeps_the_log_of_a_moved_replica(two: GuardedPair) -> None:
    """Even after the topic's deletion: a controller asks once for the deletion of a moved replica,
    and only a broker that is up."""
    assert two.assert_same(_kept_logs) == [True, True]


def _kept_logs(guarded_side: Guarded) -> list[bool]:
    """Whether the second broker has the log after its return, and after the topic's deletion."""
    side, controls = guarded_side.admin, guarded_side.cluster.controls()
    topic = side.create("moved", ((1, 2),))
    side.until(lambda: _has_log(side, topic))
    controls.stop("b2")
    side.until(lambda: len(side.get(MetadataRequest(topics=[]), 1).brokers) == 1)
    alter(side, {(topic, 0): [1]})
    side.until(lambda: replicas_are(side, topic, [1]))
    controls.start("b2")
    side.until(side.answers)
    side.create("after-return", ((2,),))
    has_log = [_has_log(side, topic)]
    side.get(DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000), 4, to=side.controller())
    side.create("after-deletion", ((2,),))
    return [*has_log, _has_log(side, topic)]


def _has_log(side: Side, topic: str) -> bool:
    """Whether the second broker has a log of the topic."""
    (directory,) = side.get(DescribeLogDirsRequest(topics=None), 1, to=2).results
    return topic in [log.name for log in directory.topics]


@contextmanager
def _below_min_isr(guarded_side: Guarded, topic: str, stored: Callable[[], bool]) -> Iterator[None]:
    """The topic wants two replicas in sync, and the second one's broker is down."""
    controls = guarded_side.cluster.controls()
    change(guarded_side.admin, TOPIC, topic, ("min.insync.replicas", 0, "2"))
    controls.stop("b2")
    guarded_side.admin.until(lambda: not stored())
    yield
    controls.start("b2")
    guarded_side.admin.until(stored)
