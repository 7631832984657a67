"""Producer states after an election and after a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.moves import next_leader
from tests.conformance.questions.producer_ids import Step
from tests.conformance.records import batch, produce
from tests.conformance.side import Side
from urteil.broker.wire.messages import DescribeProducersRequest

OLDER: Step = (0, 5, 1)
"""The last but four. After a crash Apache Kafka knows of the very last batch alone, and refuses a
repetition of this one; ours reads all five from the log."""
BEFORE: dict[int, list[Step]] = {
    71: [(0, 0, 3), (0, 3, 2), *((0, n, 1) for n in range(5, 10))],
    72: [(2, 0, 2), (3, 0, 1)],
    73: [(0, (1 << 31) - 2, 4)],
    74: [(5, 7, 1)],
}
AFTER: dict[int, list[Step]] = {
    71: [(0, 9, 1), OLDER, (0, 3, 2), (0, 0, 3), (0, 12, 1), (0, 10, 1), (1, 1, 1), (1, 0, 1)],
    72: [(3, 0, 1), (2, 2, 1), (3, 2, 1), (3, 1, 1)],
    73: [(0, (1 << 31) - 2, 4), (0, 0, 1), (0, 2, 1)],
    74: [(5, 8, 1), (5, 7, 1)],
    75: [(0, 4, 1)],
}


def lead_elsewhere(side: Side, topic: str) -> int:
    return next_leader(side, topic, 0)


def restart(side: Side, topic: str) -> int:
    assert side.controls is not None
    side.controls.stop("b2")
    with side.without_brokers(2):  # nothing is left of it to be killed
        pass
    return 2


def kill(side: Side, topic: str) -> int:
    with side.without_brokers(2):
        pass
    return 2


@pytest.mark.parametrize(
    "happens",
    [
        lead_elsewhere,
        *(pytest.param(change, marks=pytest.mark.thorough) for change in (restart, kill)),
    ],
)
def test_producer_sequences_survive_an_election_or_restart(
    pair: Pair, happens: Callable[[Side, str], int]
) -> None:
    topic = pair.name("sequences")

    def ask(side: Side) -> list[Any]:
        side.create(topic, [(2, 3) if happens is lead_elsewhere else (2,)])
        answers = _send_steps(side, topic, BEFORE, to=2)
        leader = happens(side, topic)
        side.until(lambda: side.serves(topic, 0, leader))
        answers.append(_described_producers(side, topic, to=leader))
        later = AFTER | {
            71: [state for state in AFTER[71] if happens is not kill or state != OLDER]
        }
        answers += _send_steps(side, topic, later, to=leader)
        return [*answers, _described_producers(side, topic, to=leader)]

    answers = pair.assert_same(ask)
    ids = [
        answer["producer_id"]
        for answer in answers[11]["topics"][0]["partitions"][0]["active_producers"]
    ]
    assert ids == list(BEFORE)


def _send_steps(side: Side, topic: str, steps: dict[int, list[Step]], *, to: int) -> list[Any]:
    return [
        side.ask(
            produce(
                topic,
                batch([b"v"] * count, producer_id=id, producer_epoch=epoch, base_sequence=first),
            ),
            9,
            to=to,
        )
        for id, ones in steps.items()
        for epoch, first, count in ones
    ]


def _described_producers(side: Side, topic: str, *, to: int) -> Any:
    kind = DescribeProducersRequest.TopicRequest
    request = DescribeProducersRequest(topics=[kind(name=topic, partition_indexes=[0])])
    answer = side.ask(request, 0, to=to)
    producers = answer["topics"][0]["partitions"][0]["active_producers"]
    producers.sort(key=lambda producer: producer["producer_id"])
    for producer in producers:
        del producer["last_timestamp"]
    return answer
