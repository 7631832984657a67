"""ExpireDelegationToken: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, field, request, response


@request(ApiKey.EXPIRE_DELEGATION_TOKEN, "0-2", flexible="2+")
class ExpireDelegationTokenRequest(Message):
    """In how long from now it is to end; below 0: at once."""

    hmac: bytes = field("bytes", "0+")
    expiry_time_period_ms: int = field("int64", "0+")


@response(ApiKey.EXPIRE_DELEGATION_TOKEN, "0-2", flexible="2+")
class ExpireDelegationTokenResponse(Message):
    """When the token ends now."""

    error_code: int = field("int16", "0+")
    expiry_timestamp_ms: int = field("int64", "0+")
    throttle_time_ms: int = field("int32", "0+")
