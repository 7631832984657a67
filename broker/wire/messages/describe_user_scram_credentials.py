"""DescribeUserScramCredentials: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "0", flexible="0+")
class DescribeUserScramCredentialsRequest(Message):
    """Users to describe, all for null."""

    @struct
    class UserName(Struct):
        name: str = field("string", "0+")

    users: Sequence[DescribeUserScramCredentialsRequest.UserName] | None = field(
        "[]UserName", "0+", nullable="0+"
    )


@response(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, "0", flexible="0+")
class DescribeUserScramCredentialsResponse(Message):
    """The mechanisms a user has credentials for, without these."""

    @struct
    class CredentialInfo(Struct):
        mechanism: int = field("int8", "0+")
        iterations: int = field("int32", "0+")

    @struct
    class DescribeUserScramCredentialsResult(Struct):
        user: str = field("string", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")
        credential_infos: Sequence[DescribeUserScramCredentialsResponse.CredentialInfo] = field(
            "[]CredentialInfo", "0+"
        )

    throttle_time_ms: int = field("int32", "0+")
    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    results: Sequence[DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult] = (
        field("[]DescribeUserScramCredentialsResult", "0+")
    )
