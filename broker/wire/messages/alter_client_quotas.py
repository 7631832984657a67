"""AlterClientQuotas: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.ALTER_CLIENT_QUOTAS, "0-1", flexible="1+")
class AlterClientQuotasRequest(Message):
    """Quotas to set and to remove, by entity."""

    @struct
    class EntityData(Struct):
        entity_type: str = field("string", "0+")
        entity_name: str | None = field("string", "0+", nullable="0+")

    @struct
    class OpData(Struct):
        key: str = field("string", "0+")
        value: float = field("float64", "0+")
        remove: bool = field("bool", "0+")

    @struct
    class EntryData(Struct):
        entity: Sequence[AlterClientQuotasRequest.EntityData] = field("[]EntityData", "0+")
        ops: Sequence[AlterClientQuotasRequest.OpData] = field("[]OpData", "0+")

    entries: Sequence[AlterClientQuotasRequest.EntryData] = field("[]EntryData", "0+")
    validate_only: bool = field("bool", "0+")


@response(ApiKey.ALTER_CLIENT_QUOTAS, "0-1", flexible="1+")
class AlterClientQuotasResponse(Message):
    """One error an entity."""

    @struct
    class EntityData(Struct):
        entity_type: str = field("string", "0+")
        entity_name: str | None = field("string", "0+", nullable="0+")

    @struct
    class EntryData(Struct):
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        entity: Sequence[AlterClientQuotasResponse.EntityData] = field("[]EntityData", "0+")

    throttle_time_ms: int = field("int32", "0+")
    entries: Sequence[AlterClientQuotasResponse.EntryData] = field("[]EntryData", "0+")
