"""ElectLeaders, preferred and unclean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import spread
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import ElectLeadersRequest

ELECT = Subject("ElectLeaders", ApiKey.ELECT_LEADERS)
Partitions = ElectLeadersRequest.TopicPartitions
PREFERRED, UNCLEAN = 0, 1


def request(
    *partitions_by_topic: tuple[str, Sequence[int]], kind: int = PREFERRED
) -> ElectLeadersRequest:
    topics = [
        Partitions(topic=topic, partitions=list(indexes)) for topic, indexes in partitions_by_topic
    ]
    return ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=10_000)


KINDS = {"preferred": PREFERRED, "unclean": UNCLEAN, "2": 2, "-1": -1}


@ELECT.each("led as it should be", KINDS)
def led_already(asker: Asker, kind: int) -> Any:
    return asker.ask_controller(request((spread(asker.side), [0, 1]), kind=kind))


WRONG: dict[str, Any] = {
    "unknown topic": lambda name: [("never-there", [0])],
    "unknown partition": lambda name: [(name, [9])],
    "partition -1": lambda name: [(name, [-1])],
    "known and unknown": lambda name: [(name, [0, 9]), ("never-there", [0])],
    "bad name": lambda name: [("a b", [0])],
    "empty name": lambda name: [("", [0])],
    "a partition twice": lambda name: [(name, [0, 0])],
    "a topic twice": lambda name: [(name, [0]), (name, [1])],
    "no partitions": lambda name: [(name, [])],
    "nothing": lambda name: [],
}


@ELECT.each("wrong", WRONG)
def wrong_partitions(asker: Asker, topics: Any) -> Any:
    return asker.ask_controller(request(*topics(spread(asker.side))))


@ELECT.question("unclean, unknown partition", since=1)
def wrong_unclean(asker: Asker) -> Any:
    return asker.ask_controller(request((spread(asker.side), [9]), kind=UNCLEAN))


@ELECT.question("of no kind", since=1)
def of_no_kind(asker: Asker) -> Any:
    name = spread(asker.side)
    elections = [(name, [0, 0]), (name, []), ("never-there", []), ("a b", [1])]
    return asker.ask_controller(request(*elections, kind=7))


@ELECT.question("asked of another broker than the controller")
def elsewhere(asker: Asker) -> Any:
    return asker.ask(request((spread(asker.side), [0])), to=asker.side.controller() % 3 + 1)
