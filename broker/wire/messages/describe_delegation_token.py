"""DescribeDelegationToken: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DESCRIBE_DELEGATION_TOKEN, "0-3", flexible="2+")
class DescribeDelegationTokenRequest(Message):
    """Whose tokens, everybody's for null."""

    @struct
    class DescribeDelegationTokenOwner(Struct):
        principal_type: str = field("string", "0+")
        principal_name: str = field("string", "0+")

    owners: Sequence[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner] | None = field(
        "[]DescribeDelegationTokenOwner", "0+", nullable="0+"
    )


@response(ApiKey.DESCRIBE_DELEGATION_TOKEN, "0-3", flexible="2+")
class DescribeDelegationTokenResponse(Message):
    """The tokens that the requesting principal may see."""

    @struct
    class DescribedDelegationTokenRenewer(Struct):
        principal_type: str = field("string", "0+")
        principal_name: str = field("string", "0+")

    @struct
    class DescribedDelegationToken(Struct):
        principal_type: str = field("string", "0+")
        principal_name: str = field("string", "0+")
        token_requester_principal_type: str = field("string", "3+")
        token_requester_principal_name: str = field("string", "3+")
        issue_timestamp: int = field("int64", "0+")
        expiry_timestamp: int = field("int64", "0+")
        max_timestamp: int = field("int64", "0+")
        token_id: str = field("string", "0+")
        hmac: bytes = field("bytes", "0+")
        renewers: Sequence[DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer] = field(
            "[]DescribedDelegationTokenRenewer", "0+"
        )

    error_code: int = field("int16", "0+")
    tokens: Sequence[DescribeDelegationTokenResponse.DescribedDelegationToken] = field(
        "[]DescribedDelegationToken", "0+"
    )
    throttle_time_ms: int = field("int32", "0+")
