"""Envelope: request and response at every version Apache Kafka 3.9 serves."""

from __future__ import annotations

from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.schema import Message, field, request, response


@request(ApiKey.ENVELOPE, "0", flexible="0+")
class EnvelopeRequest(Message):
    """A client's request that its broker forwards to the controller (KIP-590)."""

    request_data: bytes = field("bytes", "0+")
    request_principal: bytes | None = field("bytes", "0+", nullable="0+")
    client_host_address: bytes = field("bytes", "0+")


@response(ApiKey.ENVELOPE, "0", flexible="0+")
class EnvelopeResponse(Message):
    """The controller's answer to it."""

    response_data: bytes | None = field("bytes", "0+", nullable="0+", default=None)
    error_code: int = field("int16", "0+")
