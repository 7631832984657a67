"""DescribeConfigs: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DESCRIBE_CONFIGS, "0-4", flexible="4+")
class DescribeConfigsRequest(Message):
    """Configs of topics or brokers; null keys mean all."""

    @struct
    class DescribeConfigsResource(Struct):
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        configuration_keys: Sequence[str] | None = field("[]string", "0+", nullable="0+")

    resources: Sequence[DescribeConfigsRequest.DescribeConfigsResource] = field(
        "[]DescribeConfigsResource", "0+"
    )
    include_synonyms: bool = field("bool", "1+")
    include_documentation: bool = field("bool", "3+")


@response(ApiKey.DESCRIBE_CONFIGS, "0-4", flexible="4+")
class DescribeConfigsResponse(Message):
    """Configs with their sources."""

    @struct
    class DescribeConfigsSynonym(Struct):
        name: str = field("string", "1+")
        value: str | None = field("string", "1+", nullable="0+")
        source: int = field("int8", "1+")

    @struct
    class DescribeConfigsResourceResult(Struct):
        name: str = field("string", "0+")
        value: str | None = field("string", "0+", nullable="0+")
        read_only: bool = field("bool", "0+")
        is_default: bool = field("bool", "0")
        config_source: int = field("int8", "1+", default=-1)
        is_sensitive: bool = field("bool", "0+")
        synonyms: Sequence[DescribeConfigsResponse.DescribeConfigsSynonym] = field(
            "[]DescribeConfigsSynonym", "1+"
        )
        config_type: int = field("int8", "3+")
        documentation: str | None = field("string", "3+", nullable="0+")

    @struct
    class DescribeConfigsResult(Struct):
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        configs: Sequence[DescribeConfigsResponse.DescribeConfigsResourceResult] = field(
            "[]DescribeConfigsResourceResult", "0+"
        )

    throttle_time_ms: int = field("int32", "0+")
    results: Sequence[DescribeConfigsResponse.DescribeConfigsResult] = field(
        "[]DescribeConfigsResult", "0+"
    )
