"""UpdateFeatures: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.UPDATE_FEATURES, "0-1", flexible="0+")
class UpdateFeaturesRequest(Message):
    """Finalized features and the levels they shall have."""

    @struct
    class FeatureUpdateKey(Struct):
        feature: str = field("string", "0+")
        max_version_level: int = field("int16", "0+")
        allow_downgrade: bool = field("bool", "0")
        upgrade_type: int = field("int8", "1+", default=1)

    timeout_ms: int = field("int32", "0+", default=60_000)
    feature_updates: Sequence[UpdateFeaturesRequest.FeatureUpdateKey] = field(
        "[]FeatureUpdateKey", "0+"
    )
    validate_only: bool = field("bool", "1+")


@response(ApiKey.UPDATE_FEATURES, "0-1", flexible="0+")
class UpdateFeaturesResponse(Message):
    """What became of each."""

    @struct
    class UpdatableFeatureResult(Struct):
        feature: str = field("string", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    results: Sequence[UpdateFeaturesResponse.UpdatableFeatureResult] = field(
        "[]UpdatableFeatureResult", "0+"
    )
