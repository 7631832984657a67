"""Asking for settings and changing them; answers with Apache Kafka's very words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.conformance.side import CLOSED, Side
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, LOGGER, METRICS = 2, 4, 8, 16
SET, DELETE, APPEND, SUBTRACT = range(4)

Change = tuple[str, int, str | None]
Incremental = IncrementalAlterConfigsRequest
Whole = AlterConfigsRequest


def changes(
    side: Side,
    resources: Sequence[tuple[int, str, Sequence[Change]]],
    *,
    version: int = 1,
    validate_only: bool = False,
    to: int = 1,
) -> Any:
    """The error and its text by resource, or CLOSED."""
    asked = [
        Incremental.AlterConfigsResource(
            resource_type=kind,
            resource_name=name,
            configs=[
                Incremental.AlterableConfig(name=key, config_operation=operation, value=value)
                for key, operation, value in configs
            ],
        )
        for kind, name, configs in resources
    ]
    request = Incremental(resources=asked, validate_only=validate_only)
    return error_text(side.get(request, version, to=to))


def change(side: Side, kind: int, name: str, *configs: Change, **more: Any) -> Any:
    """Single changes of one resource."""
    return changes(side, [(kind, name, configs)], **more)


def replace(
    side: Side,
    kind: int,
    name: str,
    *configs: tuple[str, str | None],
    version: int = 2,
    validate_only: bool = False,
    to: int = 1,
) -> Any:
    """All settings of one resource anew."""
    asked = Whole.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[Whole.AlterableConfig(name=key, value=value) for key, value in configs],
    )
    return error_text(
        side.get(Whole(resources=[asked], validate_only=validate_only), version, to=to)
    )


def error_text(answer: Any) -> Any:
    if answer == CLOSED:
        return answer
    return [
        (
            response.resource_type,
            response.resource_name,
            ErrorCode(response.error_code).name,
            response.error_message,
        )
        for response in answer.responses
    ]


def describe(
    side: Side, kind: int, name: str, *keys: str, version: int = 4, to: int = 1, **more: Any
) -> Any:
    """What DescribeConfigs answers, settings by name; all without `keys`."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], **more)
    answer = side.ask(request, version, to=to)
    if answer != CLOSED:
        for result in answer["results"]:
            result["configs"].sort(key=lambda config: config["name"])
    return answer


def values(side: Side, kind: int, name: str, *keys: str, to: int = 1) -> dict[str, str | None]:
    """The values in effect by name."""
    answer = describe(side, kind, name, *keys, to=to)
    return {config["name"]: config["value"] for config in answer["results"][0]["configs"]}
