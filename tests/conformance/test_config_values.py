"""Every setting of topics and brokers that may be changed, with many values, good and bad; they are
only looked at (`validate_only`)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.conftest import Pair
from tests.conformance.side import Side
from urteil.broker.wire.messages import (
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER = 2, 4
SET, APPEND, SUBTRACT = 0, 2, 3
NUMBERS = ("-2", "-1", "0", "1", "14", "1024", "2147483648", "9223372036854775808", "0.5", "1_0")
TEXTS = ("abc", "", " true", "FALSE", "GZIP", "gzip", "CreateTime", "3.9-IV0", "required", None)
LISTS = ("compact,delete", "delete,", "*", "0:1,1:2", "0:1,,1:2", "a:1")

Change = tuple[int, str | None]
"""An operation and its value."""


def names(side: Side, kind: int, resource: str) -> list[str]:
    """What may be changed while a broker runs."""
    asked = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=resource, configuration_keys=None
    )
    (answer,) = side.get(DescribeConfigsRequest(resources=[asked]), 4).results
    return sorted(config.name for config in answer.configs if not config.read_only)


def taken(side: Side, to: int, kind: int, resource: str, name: str, change: Change) -> str:
    operation, value = change
    config = IncrementalAlterConfigsRequest.AlterableConfig(
        name=name, config_operation=operation, value=value
    )
    asked = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=resource, configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[asked], validate_only=True)
    (answer,) = side.ask(request, 1, to=to)["responses"]
    return str(answer["error_code"])


def changes(kind: int) -> Iterator[Change]:
    for value in (*NUMBERS, *TEXTS, *LISTS):
        yield SET, value
    if kind == TOPIC:
        for value in LISTS:
            yield APPEND, value
            yield SUBTRACT, value


@pytest.mark.parametrize(
    ("kind", "resource"),
    [(TOPIC, ""), (BROKER, ""), pytest.param(BROKER, "1", marks=pytest.mark.thorough)],
)
def test_values_are_accepted_and_rejected_alike(pair: Pair, kind: int, resource: str) -> None:
    if kind == TOPIC:
        resource = pair.name("values")
        pair.run_on_both(lambda side: side.create(resource))
    every = names(pair.theirs, kind, resource or "1")
    assert every
    assert every == names(pair.ours, kind, resource or "1")
    to = {side: 1 if kind == BROKER and resource else side.controller()
          for side in (pair.theirs, pair.ours)}  # fmt: skip

    differing = {}
    for name in every:
        for change in changes(kind):
            answers = [taken(side, at, kind, resource, name, change) for side, at in to.items()]
            if answers[0] != answers[1]:
                differing[name, change] = answers

    assert differing == {}
