"""IncrementalAlterConfigs: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.INCREMENTAL_ALTER_CONFIGS, "0-1", flexible="1+")
class IncrementalAlterConfigsRequest(Message):
    """Single changes of configs."""

    @struct
    class AlterableConfig(Struct):
        name: str = field("string", "0+")
        config_operation: int = field("int8", "0+")
        value: str | None = field("string", "0+", nullable="0+")

    @struct
    class AlterConfigsResource(Struct):
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        configs: Sequence[IncrementalAlterConfigsRequest.AlterableConfig] = field(
            "[]AlterableConfig", "0+"
        )

    resources: Sequence[IncrementalAlterConfigsRequest.AlterConfigsResource] = field(
        "[]AlterConfigsResource", "0+"
    )
    validate_only: bool = field("bool", "0+")


@response(ApiKey.INCREMENTAL_ALTER_CONFIGS, "0-1", flexible="1+")
class IncrementalAlterConfigsResponse(Message):
    """One error a resource."""

    @struct
    class AlterConfigsResourceResponse(Struct):
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")

    throttle_time_ms: int = field("int32", "0+")
    responses: Sequence[IncrementalAlterConfigsResponse.AlterConfigsResourceResponse] = field(
        "[]AlterConfigsResourceResponse", "0+"
    )
