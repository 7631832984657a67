"""SaslHandshake: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from collections.abc import Sequence

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, field, request, response


@request(ApiKey.SASL_HANDSHAKE, "0-1", flexible="none")
class SaslHandshakeRequest(Message):
    """The mechanism that the client chose."""

    mechanism: str = field("string", "0+")


@response(ApiKey.SASL_HANDSHAKE, "0-1", flexible="none")
class SaslHandshakeResponse(Message):
    """The mechanisms that the listener has."""

    error_code: int = field("int16", "0+")
    mechanisms: Sequence[str] = field("[]string", "0+")
