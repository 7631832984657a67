"""DescribeConfigs: of topics, brokers, loggers, and of what is none of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.questions.registry import Asker, Subject
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.messages import DescribeConfigsRequest

CONFIGS = Subject("DescribeConfigs", ApiKey.DESCRIBE_CONFIGS)
Resource = DescribeConfigsRequest.DescribeConfigsResource


def resource(kind: int, name: str, keys: Sequence[str] | None = None) -> Any:
    return Resource(resource_type=kind, resource_name=name, configuration_keys=keys)


def configs(
    asker: Asker, resources: Sequence[Any], *, synonyms: bool = True, documentation: bool = False
) -> Any:
    request = DescribeConfigsRequest(
        resources=resources, include_synonyms=synonyms, include_documentation=documentation
    )
    return asker.ask(request)


@CONFIGS.each("of a topic, synonyms", {"left out": False, "included": True}, versions=range(5))
def of_a_topic(asker: Asker, synonyms: bool) -> Any:
    given = {"retention.ms": "60000", "cleanup.policy": "compact,delete"}
    kind = "included" if synonyms else "left"
    return configs(asker, [resource(2, asker.topic(configs=given, kind=kind))], synonyms=synonyms)


@CONFIGS.question("of a broker")
def of_a_broker(asker: Asker) -> Any:
    return configs(asker, [resource(4, "1")])


@CONFIGS.question("with documentation", since=3)
def with_documentation(asker: Asker) -> Any:
    return configs(asker, [resource(2, asker.topic(), ["retention.ms"])], documentation=True)


ODD = {
    "one key": [resource(4, "1", ["num.partitions", "no.such"])],
    "no keys": [resource(4, "1", [])],
    "cluster wide": [resource(4, "")],
    "another broker": [resource(4, "2")],
    "no broker": [resource(4, "x")],
    "no topic": [resource(2, "never-there")],
    "bad topic": [resource(2, "a b")],
    "empty topic": [resource(2, "")],
    "logger of another broker": [resource(8, "2")],
    "logger of no broker": [resource(8, "x")],
    "logger without a broker": [resource(8, "")],
    "unknown kind": [resource(77, "1")],
    "kind 0": [resource(0, "1")],
    "kind 1": [resource(1, "1")],
    "group": [resource(32, "g")],
    "client metrics": [resource(16, "m")],
    "nothing": [],
    "twice": [resource(4, "1", ["num.partitions"])] * 2,
    "a topic that is not there and one broker": [
        resource(2, "never-there"), resource(4, "1", ["num.partitions"])
    ],
}  # fmt: skip


@CONFIGS.each("resource", ODD)
def odd(asker: Asker, resources: list[Any]) -> Any:
    return configs(asker, resources)
