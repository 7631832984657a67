"""CreateDelegationToken: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.CREATE_DELEGATION_TOKEN, "0-3", flexible="2+")
class CreateDelegationTokenRequest(Message):
    """Create a token for the owner, by default the requesting principal (KIP-48, KIP-373)."""

    @struct
    class CreatableRenewers(Struct):
        principal_type: str = field("string", "0+")
        principal_name: str = field("string", "0+")

    owner_principal_type: str | None = field("string", "3+", nullable="3+")
    owner_principal_name: str | None = field("string", "3+", nullable="3+")
    renewers: Sequence[CreateDelegationTokenRequest.CreatableRenewers] = field(
        "[]CreatableRenewers", "0+"
    )
    max_lifetime_ms: int = field("int64", "0+")


@response(ApiKey.CREATE_DELEGATION_TOKEN, "0-3", flexible="2+")
class CreateDelegationTokenResponse(Message):
    """The token's id and its HMAC, which is its password."""

    error_code: int = field("int16", "0+")
    principal_type: str = field("string", "0+")
    principal_name: str = field("string", "0+")
    token_requester_principal_type: str = field("string", "3+")
    token_requester_principal_name: str = field("string", "3+")
    issue_timestamp_ms: int = field("int64", "0+")
    expiry_timestamp_ms: int = field("int64", "0+")
    max_timestamp_ms: int = field("int64", "0+")
    token_id: str = field("string", "0+")
    hmac: bytes = field("bytes", "0+")
    throttle_time_ms: int = field("int32", "0+")
