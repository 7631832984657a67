"""DescribeConfigs of topics and of this broker."""

from __future__ import annotations

from collections.abc import Iterable

from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.api.topic_names import is_valid
from urteil.broker.server.broker import Broker
from urteil.broker.server.config_view import Setting, broker_settings, topic_settings
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import DescribeConfigsRequest, DescribeConfigsResponse

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4

Resource = DescribeConfigsRequest.DescribeConfigsResource
Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = DescribeConfigsResponse.DescribeConfigsResourceResult
Synonym = DescribeConfigsResponse.DescribeConfigsSynonym


@handler(ApiKey.DESCRIBE_CONFIGS, 0, 4)
async def describe_configs(
    broker: Broker, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """The values in effect, their sources and synonyms; secrets as null."""
    results = []
    for resource in request.resources:
        settings = await _settings(broker, resource)
        if isinstance(settings, Result):
            results.append(settings)
            continue
        keys = resource.configuration_keys
        wanted = [one for one in settings if not keys or one.name in keys]
        results.append(
            Result(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[_entry(one, synonyms=request.include_synonyms) for one in wanted],
            )
        )
    return DescribeConfigsResponse(results=results)


async def _settings(broker: Broker, resource: Resource) -> Iterable[Setting] | Result:
    name = resource.resource_name
    if resource.resource_type == TOPIC_RESOURCE:
        if not is_valid(name):
            return _refused(resource, ErrorCode.INVALID_TOPIC_EXCEPTION, f"bad topic name {name}")
        if name not in broker.metadata.topics:
            return _refused(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        overrides = await broker.controller.configs.topic_overrides(name)
        return topic_settings(broker.config.properties, overrides)
    if resource.resource_type == BROKER_RESOURCE:
        if name == "":
            return []  # the cluster-wide dynamic settings: there are none
        if name != str(broker.broker_id):
            return _refused(
                resource,
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {broker.broker_id} or empty string, "
                f"but received {name}",
            )
        return broker_settings(broker.config.properties)
    return _refused(
        resource, ErrorCode.INVALID_REQUEST, f"Unsupported resource type {resource.resource_type}"
    )


def _refused(resource: Resource, error: ErrorCode, message: str) -> Result:
    return Result(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def _entry(setting: Setting, *, synonyms: bool) -> Entry:
    origins = setting.origins if synonyms else ()
    return Entry(
        name=setting.name,
        value=setting.value,
        read_only=setting.read_only,
        config_source=setting.source,
        is_sensitive=setting.sensitive,
        synonyms=[Synonym(name=one.name, value=one.value, source=one.source) for one in origins],
        config_type=setting.type,
        documentation=None,
    )
