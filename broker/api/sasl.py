"""SaslHandshake and SaslAuthenticate of an authenticated peer, or on a listener without SASL.

Both are errors; `broker.net` handles the regular ones during authentication.
"""

from __future__ import annotations

from urteil.broker.api.broker_parts import BrokerParts
from urteil.broker.api.registry import RequestContext, handler
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


@handler(ApiKey.SASL_HANDSHAKE, 0, 1)
async def sasl_handshake(
    broker: BrokerParts, context: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


@handler(ApiKey.SASL_AUTHENTICATE, 0, 2)
async def sasl_authenticate(
    broker: BrokerParts, context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
