"""ExpireDelegationToken: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, field, request, response


@request(ApiKey.EXPIRE_DELEGATION_TOKEN, "0-2", flexible="2+")
class ExpireDelegationTokenRequest(Message):
    """Sets the expiry to `expiry_time_period_ms` from now; a negative period expires the token."""

    hmac: bytes = field("bytes", "0+")
    expiry_time_period_ms: int = field("int64", "0+")


@response(ApiKey.EXPIRE_DELEGATION_TOKEN, "0-2", flexible="2+")
class ExpireDelegationTokenResponse(Message):
    """The new expiry of the token."""

    error_code: int = field("int16", "0+")
    expiry_timestamp_ms: int = field("int64", "0+")
    throttle_time_ms: int = field("int32", "0+")
