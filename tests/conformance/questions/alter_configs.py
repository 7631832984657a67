"""AlterConfigs and IncrementalAlterConfigs of topics and brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.questions.describe_configs import resource as described
from tests.conformance.questions.registry import Asker, Subject
from tests.conformance.questions.stage import spread
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)

ALTER = Subject("AlterConfigs", ApiKey.ALTER_CONFIGS)
CHANGE = Subject("IncrementalAlterConfigs", ApiKey.INCREMENTAL_ALTER_CONFIGS)
TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)


def alter_configs(
    kind: int, name: str, configs: Mapping[str, str | None], *, validate_only: bool = False
) -> AlterConfigsRequest:
    given = [AlterConfigsRequest.AlterableConfig(name=k, value=v) for k, v in configs.items()]
    resource = AlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=given
    )
    return AlterConfigsRequest(resources=[resource], validate_only=validate_only)


Change = tuple[str, int, str | None]


def incremental_change(
    kind: int, name: str, *changes: Change, validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    given = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=how, value=value)
        for key, how, value in changes
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=given
    )
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)


KEYS = ("cleanup.policy", "compression.type", "max.message.bytes", "retention.ms", "segment.bytes")


def described_values(asker: Asker, topic: str, expected: Mapping[str, str]) -> Any:
    """What broker 2 says of a topic's configs once it has heard of the change."""
    request = DescribeConfigsRequest(resources=[described(TOPIC, topic, KEYS)])

    def is_described() -> bool:
        values = {
            config.name: config.value
            for config in asker.side.get(request, 4, to=2).results[0].configs
        }
        return all(values.get(key) == value for key, value in expected.items())

    asker.side.until(is_described)
    return asker.side.ask(request, 4, to=2)


STEPS: dict[str, tuple[list[Change], dict[str, str]]] = {
    "set": ([("retention.ms", SET, "70000")], {"retention.ms": "70000"}),
    "deleted": ([("segment.bytes", DELETE, None)], {"segment.bytes": "1073741824"}),
    "appended": ([("cleanup.policy", APPEND, "compact")], {"cleanup.policy": "delete,compact"}),
    "appended again": ([("cleanup.policy", APPEND, "delete")], {"cleanup.policy": "delete"}),
    "subtracted": ([("cleanup.policy", SUBTRACT, "compact")], {"cleanup.policy": "delete"}),
    "three at once": (
        [("retention.ms", SET, "1"), ("segment.bytes", DELETE, "x"),
         ("cleanup.policy", SET, "compact")],
        {"cleanup.policy": "compact", "retention.ms": "1"},
    ),
}  # fmt: skip


@CHANGE.each("of a topic", STEPS)
def change(asker: Asker, step: tuple[list[Change], dict[str, str]]) -> Any:
    topic = asker.topic(configs={"segment.bytes": "100000"})
    return [
        asker.ask(incremental_change(TOPIC, topic, *step[0])),
        described_values(asker, topic, step[1]),
    ]


NONE = [(f"none.{number}", DELETE, None) for number in range(700)]
"""Deletions of what is not set change nothing."""
MANY_CHANGES: dict[str, tuple[list[Change], dict[str, str]]] = {
    "the last one wrong": (
        [("retention.ms", SET, "70000"), *NONE, ("segment.bytes", SET, "x")],
        {"retention.ms": "604800000", "segment.bytes": "100000"},
    ),
    "a key twice": (
        [("retention.ms", SET, "70000"), *NONE, ("retention.ms", SET, "80000")],
        {"retention.ms": "604800000", "segment.bytes": "100000"},
    ),
    "all right": (
        [("retention.ms", SET, "70000"), *NONE, ("segment.bytes", SET, "200000")],
        {"retention.ms": "70000", "segment.bytes": "200000"},
    ),
}


@CHANGE.each("of a topic, hundreds", MANY_CHANGES)
def many_changes(asker: Asker, step: tuple[list[Change], dict[str, str]]) -> Any:
    topic = asker.topic(configs={"segment.bytes": "100000"})
    return [
        asker.ask(incremental_change(TOPIC, topic, *step[0])),
        described_values(asker, topic, step[1]),
    ]


@ALTER.question("of a topic: all others go back to their defaults")
def alter(asker: Asker) -> Any:
    topic = asker.topic(configs={"segment.bytes": "100000", "retention.ms": "5"})
    expected = {"retention.ms": "70000", "segment.bytes": "1073741824"}
    answer = asker.ask(alter_configs(TOPIC, topic, {"retention.ms": "70000"}))
    return [answer, described_values(asker, topic, expected)]


@ALTER.question("of a topic: none left")
def alter_to_none(asker: Asker) -> Any:
    topic = asker.topic(configs={"segment.bytes": "100000"})
    return [
        asker.ask(alter_configs(TOPIC, topic, {})),
        described_values(asker, topic, {"segment.bytes": "1073741824"}),
    ]


WRONG_CHANGES: dict[str, Sequence[Change]] = {
    "unknown key": [("no.such", SET, "1")],
    "unknown key deleted": [("no.such", DELETE, None)],
    "bad value": [("retention.ms", SET, "soon")],
    "value out of range": [("segment.bytes", SET, "1")],
    "null value": [("retention.ms", SET, None)],
    "empty value": [("retention.ms", SET, "")],
    "appended to no list": [("retention.ms", APPEND, "1")],
    "subtracted from no list": [("retention.ms", SUBTRACT, "1")],
    "null appended": [("cleanup.policy", APPEND, None)],
    "appended what is not a policy": [("cleanup.policy", APPEND, "hoard")],
    "operation 9": [("retention.ms", 9, "1")],
    "operation -1": [("retention.ms", -1, "1")],
    "a key twice": [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
    "good and bad": [("retention.ms", SET, "1"), ("segment.bytes", SET, "x")],
    "nothing": [],
}


@CHANGE.each("of a topic, asked only", WRONG_CHANGES)
def wrong_changes(asker: Asker, changes: Sequence[Change]) -> Any:
    return asker.ask(incremental_change(TOPIC, spread(asker.side), *changes, validate_only=True))


WRONG_CONFIGS: dict[str, dict[str, str | None]] = {
    "unknown key": {"no.such": "1"},
    "bad value": {"retention.ms": "soon"},
    "null value": {"retention.ms": None},
    "value out of range": {"segment.bytes": "1"},
    "good and bad": {"retention.ms": "1", "segment.bytes": "x"},
    "good": {"retention.ms": "1"},
}


@ALTER.each("of a topic, asked only", WRONG_CONFIGS)
def wrong_configs(asker: Asker, configs: dict[str, str | None]) -> Any:
    return asker.ask(alter_configs(TOPIC, spread(asker.side), configs, validate_only=True))


RESOURCES: dict[str, tuple[int, str, str, str]] = {
    "unknown topic": (TOPIC, "never-there", "retention.ms", "1"),
    "bad topic": (TOPIC, "a b", "retention.ms", "1"),
    "empty topic": (TOPIC, "", "retention.ms", "1"),
    "broker": (BROKER, "1", "log.cleaner.backoff.ms", "100"),
    "another broker": (BROKER, "2", "log.cleaner.backoff.ms", "100"),
    "no broker": (BROKER, "x", "log.cleaner.backoff.ms", "100"),
    "unknown broker": (BROKER, "9", "log.cleaner.backoff.ms", "100"),
    "all brokers": (BROKER, "", "log.cleaner.backoff.ms", "100"),
    "read-only of a broker": (BROKER, "1", "zookeeper.connect", "x"),
    "unknown of a broker": (BROKER, "1", "no.such", "x"),
    "bad value of a broker": (BROKER, "1", "num.io.threads", "x"),
    "of one broker for all": (BROKER, "", "listeners", "x"),
    "topic key of a broker": (BROKER, "1", "retention.ms", "1"),
    "logger": (LOGGER, "1", "kafka.none", "INFO"),
    "logger of another": (LOGGER, "2", "kafka", "INFO"),
    "bad level": (LOGGER, "1", "kafka", "LOUD"),
    "unknown kind": (77, "x", "retention.ms", "1"),
    "kind 0": (0, "x", "retention.ms", "1"),
}


@CHANGE.each("asked only", RESOURCES)
def change_resource(asker: Asker, given: tuple[int, str, str, str]) -> Any:
    kind, name, key, value = given
    return asker.ask(incremental_change(kind, name, (key, SET, value), validate_only=True))


@ALTER.each("asked only", RESOURCES)
def alter_resource(asker: Asker, given: tuple[int, str, str, str]) -> Any:
    kind, name, key, value = given
    return asker.ask(alter_configs(kind, name, {key: value}, validate_only=True))


@CHANGE.question("a topic twice")
def change_twice(asker: Asker) -> Any:
    resource = incremental_change(TOPIC, spread(asker.side), ("retention.ms", SET, "1")).resources[
        0
    ]
    return asker.ask(
        IncrementalAlterConfigsRequest(resources=[resource, resource], validate_only=True)
    )


# AlterConfigs of a resource twice is not asked: Apache Kafka fails and gives no answer at all.


@CHANGE.question("of a broker, and back")
def change_broker(asker: Asker) -> Any:
    key = "log.cleaner.io.buffer.load.factor"
    request = DescribeConfigsRequest(resources=[described(BROKER, "3", [key])])

    def value() -> str:
        return str(asker.side.get(request, 4, to=3).results[0].configs[0].value)

    answers = [asker.ask(incremental_change(BROKER, "3", (key, SET, "0.8")), to=3)]
    asker.side.until(lambda: value() == "0.8")
    answers.append(asker.side.ask(request, 4, to=3))
    answers.append(asker.ask(incremental_change(BROKER, "3", (key, DELETE, None)), to=3))
    asker.side.until(lambda: value() == "0.9")
    return answers
