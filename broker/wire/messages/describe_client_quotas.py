"""DescribeClientQuotas: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DESCRIBE_CLIENT_QUOTAS, "0-1", flexible="1+")
class DescribeClientQuotasRequest(Message):
    """Entities by components; `strict`: those that have no other component."""

    @struct
    class ComponentData(Struct):
        entity_type: str = field("string", "0+")
        match_type: int = field("int8", "0+")
        match: str | None = field("string", "0+", nullable="0+")

    components: Sequence[DescribeClientQuotasRequest.ComponentData] = field("[]ComponentData", "0+")
    strict: bool = field("bool", "0+")


@response(ApiKey.DESCRIBE_CLIENT_QUOTAS, "0-1", flexible="1+")
class DescribeClientQuotasResponse(Message):
    """The quotas of each entity that matches."""

    @struct
    class EntityData(Struct):
        entity_type: str = field("string", "0+")
        entity_name: str | None = field("string", "0+", nullable="0+")

    @struct
    class ValueData(Struct):
        key: str = field("string", "0+")
        value: float = field("float64", "0+")

    @struct
    class EntryData(Struct):
        entity: Sequence[DescribeClientQuotasResponse.EntityData] = field("[]EntityData", "0+")
        values: Sequence[DescribeClientQuotasResponse.ValueData] = field("[]ValueData", "0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    entries: Sequence[DescribeClientQuotasResponse.EntryData] | None = field(
        "[]EntryData", "0+", nullable="0+"
    )
