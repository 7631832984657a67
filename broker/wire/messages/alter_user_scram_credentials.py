"""AlterUserScramCredentials: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, Struct, field, request, response, struct


@request(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "0", flexible="0+")
class AlterUserScramCredentialsRequest(Message):
    """Credentials to remove and to set."""

    @struct
    class ScramCredentialDeletion(Struct):
        name: str = field("string", "0+")
        mechanism: int = field("int8", "0+")

    @struct
    class ScramCredentialUpsertion(Struct):
        name: str = field("string", "0+")
        mechanism: int = field("int8", "0+")
        iterations: int = field("int32", "0+")
        salt: bytes = field("bytes", "0+")
        salted_password: bytes = field("bytes", "0+")

    deletions: Sequence[AlterUserScramCredentialsRequest.ScramCredentialDeletion] = field(
        "[]ScramCredentialDeletion", "0+"
    )
    upsertions: Sequence[AlterUserScramCredentialsRequest.ScramCredentialUpsertion] = field(
        "[]ScramCredentialUpsertion", "0+"
    )


@response(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, "0", flexible="0+")
class AlterUserScramCredentialsResponse(Message):
    """One error a user."""

    @struct
    class AlterUserScramCredentialsResult(Struct):
        user: str = field("string", "0+")
        error_code: int = field("int16", "0+")
        error_message: str | None = field("string", "0+", nullable="0+")

    throttle_time_ms: int = field("int32", "0+")
    results: Sequence[AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult] = field(
        "[]AlterUserScramCredentialsResult", "0+"
    )
