"""ApiVersions: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.API_VERSIONS, "0-4", flexible="3+")
class ApiVersionsRequest(Message):
    """Requests the supported versions; names the client's software (KIP-511)."""

    client_software_name: str = field("string", "3+")
    client_software_version: str = field("string", "3+")


@response(ApiKey.API_VERSIONS, "0-4", flexible="3+")
class ApiVersionsResponse(Message):
    """The supported versions of each API. The response header is always version 0."""

    @struct
    class ApiVersion(Struct):
        api_key: int = field("int16", "0+")
        min_version: int = field("int16", "0+")
        max_version: int = field("int16", "0+")

    @struct
    class SupportedFeatureKey(Struct):
        name: str = field("string", "3+")
        min_version: int = field("int16", "3+")
        max_version: int = field("int16", "3+")

    @struct
    class FinalizedFeatureKey(Struct):
        name: str = field("string", "3+")
        max_version_level: int = field("int16", "3+")
        min_version_level: int = field("int16", "3+")

    error_code: int = field("int16", "0+")
    api_keys: Sequence[ApiVersionsResponse.ApiVersion] = field("[]ApiVersion", "0+")
    throttle_time_ms: int = field("int32", "1+")
    supported_features: Sequence[ApiVersionsResponse.SupportedFeatureKey] = field(
        "[]SupportedFeatureKey", "3+", tag=0, tagged="3+"
    )
    finalized_features_epoch: int = field("int64", "3+", default=-1, tag=1, tagged="3+")
    finalized_features: Sequence[ApiVersionsResponse.FinalizedFeatureKey] = field(
        "[]FinalizedFeatureKey", "3+", tag=2, tagged="3+"
    )
    zk_migration_ready: bool = field("bool", "3+", tag=3, tagged="3+")
