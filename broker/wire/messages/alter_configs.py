"""AlterConfigs: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.ALTER_CONFIGS, "0-2", flexible="2+")
class AlterConfigsRequest(Message):
    """Whole new configs of resources."""

    @struct
    class AlterableConfig(Struct):
        name: str = field("string", "0+")
        value: str | None = field("string", "0+", nullable="0+")

    @struct
    class AlterConfigsResource(Struct):
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")
        configs: Sequence[AlterConfigsRequest.AlterableConfig] = field("[]AlterableConfig", "0+")

    resources: Sequence[AlterConfigsRequest.AlterConfigsResource] = field(
        "[]AlterConfigsResource", "0+"
    )
    validate_only: bool = field("bool", "0+")


@response(ApiKey.ALTER_CONFIGS, "0-2", flexible="2+")
class AlterConfigsResponse(Message):
    """One error a resource."""

    @struct
    class AlterConfigsResourceResponse(Struct):
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        resource_type: int = field("int8", "0+")
        resource_name: str = field("string", "0+")

    throttle_time_ms: int = field("int32", "0+")
    responses: Sequence[AlterConfigsResponse.AlterConfigsResourceResponse] = field(
        "[]AlterConfigsResourceResponse", "0+"
    )
