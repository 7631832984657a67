"""SaslAuthenticate: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, field, request, response


@request(ApiKey.SASL_AUTHENTICATE, "0-2", flexible="2+")
class SaslAuthenticateRequest(Message):
    """One message of the client in the exchange of the SASL mechanism."""

    auth_bytes: bytes = field("bytes", "0+")


@response(ApiKey.SASL_AUTHENTICATE, "0-2", flexible="2+")
class SaslAuthenticateResponse(Message):
    """The broker's next message. The last response has the lifetime of the session in ms; 0 is
    unlimited (KIP-368)."""

    error_code: int = field("int16", "0+")
    error_message: str | None = field("string", "0+", nullable="0+")
    auth_bytes: bytes = field("bytes", "0+")
    session_lifetime_ms: int = field("int64", "1+")
