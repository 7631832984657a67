"""ElectLeaders, preferred and unclean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.questions.registry import Asked, Subject
from tests.conformance.questions.stage import spread
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import ElectLeadersRequest

ELECT = Subject("ElectLeaders", ApiKey.ELECT_LEADERS)
Partitions = ElectLeadersRequest.TopicPartitions
PREFERRED, UNCLEAN = 0, 1


def request(*wanted: tuple[str, Sequence[int]], kind: int = PREFERRED) -> ElectLeadersRequest:
    topics = [Partitions(topic=topic, partitions=list(indexes)) for topic, indexes in wanted]
    return ElectLeadersRequest(election_type=kind, topic_partitions=topics, timeout_ms=10_000)


KINDS = {"preferred": PREFERRED, "unclean": UNCLEAN, "2": 2, "-1": -1}


@ELECT.each("led as it should be", KINDS)
def led_already(it: Asked, kind: int) -> Any:
    return it.ask_controller(request((spread(it.side), [0, 1]), kind=kind))


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
def wrong_partitions(it: Asked, wanted: Any) -> Any:
    return it.ask_controller(request(*wanted(spread(it.side))))


@ELECT.question("unclean, unknown partition", since=1)
def wrong_unclean(it: Asked) -> Any:
    return it.ask_controller(request((spread(it.side), [9]), kind=UNCLEAN))


@ELECT.question("of no kind", since=1)
def of_no_kind(it: Asked) -> Any:
    name = spread(it.side)
    wanted = [(name, [0, 0]), (name, []), ("never-there", []), ("a b", [1])]
    return it.ask_controller(request(*wanted, kind=7))


@ELECT.question("asked of another broker than the controller")
def elsewhere(it: Asked) -> Any:
    return it.ask(request((spread(it.side), [0])), to=it.side.controller() % 3 + 1)
