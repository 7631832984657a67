"""CreatePartitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import spread
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import CreatePartitionsRequest, MetadataRequest

PARTITIONS = Subject("CreatePartitions", ApiKey.CREATE_PARTITIONS)
Topic = CreatePartitionsRequest.CreatePartitionsTopic
Assignment = CreatePartitionsRequest.CreatePartitionsAssignment


def wish(name: str, count: int, *replicas: Sequence[int]) -> Any:
    given = [Assignment(broker_ids=list(ids)) for ids in replicas]
    return Topic(name=name, count=count, assignments=given or None)


def request(*topics: Any, validate_only: bool = False) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(topics=topics, timeout_ms=10_000, validate_only=validate_only)


@PARTITIONS.question("two more, and their replicas")
def added_partitions(asker: Asker) -> Any:
    topic = asker.topic([(1, 2)])
    answer = asker.ask_controller(request(wish(topic, 3, (2, 3), (3, 1))))
    partitions_request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])

    def led() -> bool:
        partitions = asker.side.get(partitions_request, 7).topics[0].partitions
        return len(partitions) == 3 and all(
            len(partition.isr_nodes) == 2 for partition in partitions
        )

    asker.side.until(led)
    return [answer, asker.side.ask(partitions_request, 7)]


@PARTITIONS.question("more, placed by the controller")
def assigned_partitions(asker: Asker) -> Any:
    return asker.ask_controller(request(wish(asker.topic(), 4)))


WISHES: dict[str, Any] = {
    "as many": lambda name: [wish(name, 3)],
    "fewer": lambda name: [wish(name, 2)],
    "none": lambda name: [wish(name, 0)],
    "-1": lambda name: [wish(name, -1)],
    "one more": lambda name: [wish(name, 4)],
    "unknown topic": lambda name: [wish("never-there", 3)],
    "bad name": lambda name: [wish("a b", 3)],
    "empty name": lambda name: [wish("", 3)],
    "twice": lambda name: [wish(name, 4), wish(name, 5)],
    "twice and another": lambda name: [wish(name, 4), wish(name, 4), wish("never-there", 4)],
    "empty name, and one twice": lambda name: [wish("", 3), wish(name, 4), wish(name, 4)],
    "too few replica lists": lambda name: [wish(name, 5, (1, 2, 3))],
    "too many replica lists": lambda name: [wish(name, 4, (1, 2, 3), (2, 3, 1))],
    "fewer replicas than the others": lambda name: [wish(name, 4, (1,))],
    "more replicas than there are brokers": lambda name: [wish(name, 4, (1, 2, 3, 4))],
    "unknown broker": lambda name: [wish(name, 4, (1, 2, 9))],
    "broker -1": lambda name: [wish(name, 4, (1, 2, -1))],
    "a broker twice": lambda name: [wish(name, 4, (1, 2, 2))],
    "no replicas": lambda name: [wish(name, 4, ())],
    "empty list of lists": lambda name: [Topic(name=name, count=4, assignments=[])],
    "nothing": lambda name: [],
}


@PARTITIONS.each("asked only", WISHES)
def validated_partitions(asker: Asker, wishes: Any) -> Any:
    return asker.ask_controller(request(*wishes(spread(asker.side)), validate_only=True))


@PARTITIONS.question("asked of another broker than the controller")
def elsewhere(asker: Asker) -> Any:
    return asker.ask(request(wish("never-there", 3)), to=asker.side.controller() % 3 + 1)
