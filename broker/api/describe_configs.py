"""DescribeConfigs of topics, of this broker and its loggers, and of the defaults of all brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.config_authorization import config_denial
from urteil.broker.api.error_responses import ERROR_MESSAGES
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.base.topic_names import is_valid
from urteil.broker.config.descriptions import (
    LOGGER,
    Setting,
    broker_settings,
    cluster_wide_settings,
    topic_settings,
)
from urteil.broker.config.incremental_changes import RejectedChange
from urteil.broker.config.log_levels import levels
from urteil.broker.config.values import ConfigError, parse_int
from urteil.broker.controller.config_administration import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    TOPIC,
)
from urteil.broker.security.acls.acl_model import Operation
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import DescribeConfigsRequest, DescribeConfigsResponse

KINDS = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS)
Resource = DescribeConfigsRequest.DescribeConfigsResource
Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = DescribeConfigsResponse.DescribeConfigsResourceResult
Synonym = DescribeConfigsResponse.DescribeConfigsSynonym


@handler(ApiKey.DESCRIBE_CONFIGS, 0, 4, resources="results")
async def describe_configs(
    broker: BrokerParts, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """The effective values, their sources and synonyms; secrets are null. An unknown resource type
    fails the whole request."""
    unknown = [
        resource.resource_type
        for resource in request.resources
        if resource.resource_type not in KINDS
    ]
    if unknown:
        why = f"Unexpected resource type {unknown[0]}"
        return _all_refused(request, ErrorCode.INVALID_REQUEST, why)
    results = []
    forbidden = []
    for resource in request.resources:
        denied = config_denial(
            broker,
            context,
            Operation.DESCRIBE_CONFIGS,
            resource.resource_type,
            resource.resource_name,
        )
        if denied is not ErrorCode.NONE:
            forbidden.append(
                Result(
                    error_code=denied,
                    error_message=ERROR_MESSAGES[denied],
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
            )
            continue
        error: ErrorCode = ErrorCode.NONE
        message: str | None = ""
        entries: Sequence[Entry] = ()
        try:
            entries = await _entries(broker, resource, request)
        except RejectedChange as refused:
            error, message = refused.error, refused.message
        except ConfigError as wrong:  # an invalid value in ZooKeeper fails its own resource only
            error, message = ErrorCode.UNKNOWN_SERVER_ERROR, str(wrong)
        keys = resource.configuration_keys
        results.append(
            Result(
                error_code=error,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[entry for entry in entries if not keys or entry.name in keys],
            )
        )
    return DescribeConfigsResponse(results=[*results, *forbidden])


def _all_refused(
    request: DescribeConfigsRequest, error: ErrorCode, why: str
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[
            Result(
                error_code=error,
                error_message=why,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


async def _entries(
    broker: BrokerParts, resource: Resource, request: DescribeConfigsRequest
) -> Sequence[Entry]:
    kind, name = resource.resource_type, resource.resource_name
    if kind == TOPIC:
        return _entries_of(await _topic(broker, name), request)
    if kind == BROKER and name == "":
        return _entries_of(cluster_wide_settings(broker.config.properties), request)
    if kind == BROKER:
        _check_broker(name, broker.broker_id, "or empty string, ")
        return _entries_of(broker_settings(broker.config.properties), request)
    if kind == BROKER_LOGGER:
        if not name:
            raise RejectedChange(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        _check_broker(name, broker.broker_id, "")
        return [
            Entry(name=logger, value=level, config_source=LOGGER)
            for logger, level in levels().items()
        ]
    raise RejectedChange(ErrorCode.INVALID_REQUEST, _no_metrics(name))


async def _topic(broker: BrokerParts, name: str) -> Iterable[Setting]:
    """The settings; REQUEST_TIMED_OUT if ZooKeeper does not answer in `request.timeout.ms`."""
    if not is_valid(name):
        raise RejectedChange(ErrorCode.INVALID_TOPIC_EXCEPTION, f"bad topic name {name}")
    if name not in broker.metadata.topics:
        raise RejectedChange(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    try:
        async with asyncio.timeout(broker.config.request_timeout_ms / 1000):
            overrides = await broker.controller.configs.topic_overrides(name)
    except TimeoutError:
        raise RejectedChange(ErrorCode.REQUEST_TIMED_OUT, "ZooKeeper cannot be reached") from None
    return topic_settings(broker.config.properties, overrides)


def _check_broker(name: str, broker_id: int, others: str) -> None:
    number = parse_int(name)
    if number is None:
        raise RejectedChange(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        )
    if number != broker_id:
        raise RejectedChange(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {broker_id} {others}but received {name}",
        )


def _no_metrics(name: str) -> str:
    if not name:
        return "Client metrics subscription name must not be empty"
    return "Config type client-metrics is only supported on KRaft clusters"


def _entries_of(settings: Iterable[Setting], request: DescribeConfigsRequest) -> list[Entry]:
    return [_entry(setting, request) for setting in settings]


def _entry(setting: Setting, request: DescribeConfigsRequest) -> Entry:
    origins = setting.origins if request.include_synonyms else ()
    return Entry(
        name=setting.name,
        value=None if setting.sensitive else setting.value,
        read_only=setting.read_only,
        config_source=setting.source,
        is_sensitive=setting.sensitive,
        synonyms=[
            Synonym(name=origin.name, value=origin.value, source=origin.source)
            for origin in origins
        ],
        config_type=setting.type,
        documentation=setting.documentation if request.include_documentation else None,
    )
