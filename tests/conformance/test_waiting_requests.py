"""Requests that wait at a broker when its partition moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.fetching import fetch, fetch_request
from tests.conformance.groups import beat, join, stable, sync
from tests.conformance.moves import next_leader
from tests.conformance.records import batch, produce
from tests.conformance.side import Side
from tests.conformance.test_partitions import alter, elect, partitions
from urteil.broker.base.coordinator_partition import partition_for
from urteil.broker.wire.messages import (
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    ListOffsetsRequest,
)

OFFSETS = "__consumer_offsets"
LONG_MS = 20_000
FOREVER_MS = 600_000
"""Longer than anybody listens."""
COMPARED = (
    "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "high_watermark",
    "last_stable_offset", "aborted_transactions",
)  # fmt: skip


def lead_elsewhere(side: Side, topic: str, ids: list[int]) -> None:
    alter(side, {(topic, 0): [ids[1], ids[0], ids[2]]})
    elect(side, {topic: [0]}, 2)


def give_up(side: Side, topic: str, ids: list[int]) -> None:
    """Remove the leader from the replicas."""
    alter(side, {(topic, 0): [ids[1], ids[2]]})


def delete(side: Side, topic: str, ids: list[int]) -> None:
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=0)
    side.ask(request, 5, to=side.controller())


@pytest.mark.parametrize("happens", [lead_elsewhere, give_up, delete])
def test_requests_waiting_at_a_deposed_leader_are_answered_alike(
    pair: Pair, happens: Callable[[Side, str, list[int]], None]
) -> None:
    """A paused replica makes requests that need all replicas wait."""
    topic = pair.name("leaves")

    def ask(side: Side) -> list[Any]:
        still = 3 if side.controller() != 3 else 2  # broker 1 is asked for the controller
        ids = [broker for broker in (1, 2, 3) if broker != still] + [still]
        side.create(topic, [ids])
        side.get(produce(topic, batch([b"first"])), 9, to=ids[0])
        with side.paused_broker(still):
            waiting = []
            for version, more in ((4, {}), (11, {}), (11, {"isolation_level": 1}), (12, {})):
                request = fetch_request(topic, [{"fetch_offset": 1}], max_wait_ms=LONG_MS, **more)
                waiting.append(side.start(request, version, to=ids[0]))
            # Appended after what came before it was read, which then waits too.
            second = produce(topic, batch([b"second"]), timeout_ms=LONG_MS)
            waiting.append(side.start(second, 9, to=ids[0]))
            side.until(lambda: _end(side, topic, to=ids[0]) == 2)
            happens(side, topic, ids)
            return [_partition_answer(side.plain(request.answer())) for request in waiting]

    answers = pair.assert_same(ask)
    expected = "UNKNOWN_TOPIC_OR_PARTITION" if happens is delete else "NOT_LEADER_OR_FOLLOWER"
    assert [answers[at]["error_code"] for at in (-1, 0)] == [expected] * 2


def test_fetch_of_an_older_segment_does_not_wait(pair: Pair) -> None:
    """One answer has one segment's records, however few; the rest is readable at once."""
    topic = pair.name("older")

    def ask(side: Side) -> list[Any]:
        side.create(topic, [[1, 2, 3]], {"segment.bytes": "200"})
        for value in (b"a" * 100, b"b" * 100, b"c" * 100):
            side.get(produce(topic, batch([value])), 9)
        terms = {"max_wait_ms": FOREVER_MS, "min_bytes": 1 << 20}
        return [
            fetch(side, version, topic, [{"fetch_offset": offset}], **terms, **more)
            for version, more in ((2, {}), (4, {"isolation_level": 1}), (12, {}))
            for offset in (0, 1)
        ]

    for answers in pair.assert_same(ask):
        assert answers["responses"][0]["partitions"][0]["high_watermark"] == 3


def test_waiting_produce_fails_when_the_isr_shrinks_below_minimum(pair: Pair) -> None:
    """The appended batch has an offset, but the answer does not state that it is committed."""
    topic = pair.name("too-small")

    def ask(side: Side) -> list[Any]:
        still = 3 if side.controller() != 3 else 2
        side.create(topic, [(1, still)], {"min.insync.replicas": "2"})
        side.get(produce(topic, batch([b"first"])), 9)
        with side.paused_broker(still):
            answers = [side.ask(produce(topic, batch([b"second"]), timeout_ms=100), 9)]
            side.until(lambda: partitions(side, topic)["partitions"][0]["isr_nodes"] == [1])
            third = produce(topic, batch([b"third"]), timeout_ms=100)

            def is_rejected() -> bool:  # the leader hears of the ISR after the controller's broker
                answers[1:] = [side.ask(third, 9)]
                return bool(_partition_answer(answers[1])["error_code"] != "REQUEST_TIMED_OUT")

            side.until(is_rejected)
            asked = fetch_request(topic, [{"fetch_offset": 1}], max_wait_ms=1)
            return [*answers, side.ask(asked, 11)]

    said = [_partition_answer(answer)["error_code"] for answer in pair.assert_same(ask)]
    assert said == ["REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS", "NONE"]


def test_requests_waiting_at_a_former_coordinator_are_answered_alike(pair: Pair) -> None:
    """Waiting requests fail; the next coordinator has what was stored."""
    names = [pair.name("joining"), pair.name("syncing")]

    def ask(side: Side) -> list[Any]:
        answers: list[Any] = []
        for group, syncs in zip(names, (False, True), strict=True):
            at, first, generation = stable(side, group)
            second = side.get(join(group), 7, to=at).member_id
            side.names.update({first: "first", second: "second"})
            waiting = side.start(join(group, second), 7, to=at)
            pulse = beat(group, first, generation)
            side.until(lambda at=at, heartbeat=pulse: side.get(heartbeat, 3, to=at).error_code != 0)  # type: ignore[misc]
            if syncs:
                side.get(join(group, first), 7, to=at)
                joined = waiting.answer()
                waiting = side.start(sync(group, second, joined.generation_id), 3, to=at)
            then = _move_coordinator(side, group)
            answers.append(side.plain(waiting.answer()))
            asked = DescribeGroupsRequest(groups=[group])
            answers += [side.ask(asked, 4, to=to) for to in (at, then)]
            for n, member in ((generation, first), (generation + 1, first), (generation, second)):
                answers += [side.ask(beat(group, member, n), 3, to=to) for to in (at, then)]
            answers.append(side.ask(join(group, first), 7, to=then))
        return answers

    answers = pair.assert_same(ask)
    assert [answers[0]["error_code"], answers[10]["error_code"]] == ["NOT_COORDINATOR"] * 2


def _move_coordinator(side: Side, group: str) -> int:
    """Move the group's coordinator. Returns the new one."""
    count = len(partitions(side, OFFSETS)["partitions"])
    then = next_leader(side, OFFSETS, partition_for(group, count))
    side.until(lambda: side.coordinator(group) == then)
    return then


def _end(side: Side, topic: str, *, to: int) -> int:
    asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked])]
    answer = side.get(ListOffsetsRequest(replica_id=-2, topics=topics), 4, to=to)
    return int(answer.topics[0].partitions[0].offset)


def _partition_answer(answer: Any) -> Any:
    """The partition's, without the records and where the leader is."""
    (topic,) = answer["responses"]
    (partition,) = topic.get("partition_responses") or topic["partitions"]
    return {name: value for name, value in partition.items() if name in COMPARED}
