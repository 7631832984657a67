"""The SASL client: this broker authenticates at another broker's listener."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from urteil.broker.security.kerberos.gssapi import GSSAPI
from urteil.broker.security.sasl.sasl_exchange import BrokenExchange, Denied, Login
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest

HANDSHAKE_VERSION, AUTHENTICATE_VERSION = 1, 2


async def log_in(ask: Callable[[Any, int], Awaitable[Any]], mechanism: str, login: Login) -> int:
    """Authenticate; return the lifetime of the session in ms, 0 without limit. Raises
    ConnectionError."""
    answer = await ask(SaslHandshakeRequest(mechanism=mechanism), HANDSHAKE_VERSION)
    if answer.error_code != ErrorCode.NONE:
        raise ConnectionError(
            f"it does not take {mechanism} (sasl.mechanism.inter.broker.protocol), but "
            f"{', '.join(answer.mechanisms)}"
        )
    lifetime_ms = 0

    async def step(challenge: bytes | None) -> bytes | None:
        if mechanism == GSSAPI:  # a step may wait for the KDC
            return await asyncio.to_thread(login.step, challenge)
        return login.step(challenge)

    try:
        message = await step(None)
        while message is not None:
            request = SaslAuthenticateRequest(auth_bytes=message)
            answer = await ask(request, AUTHENTICATE_VERSION)
            if answer.error_code != ErrorCode.NONE:
                raise ConnectionError(f"it refuses this broker: {answer.error_message}")
            lifetime_ms = answer.session_lifetime_ms
            message = await step(bytes(answer.auth_bytes))
    except (Denied, BrokenExchange) as error:
        raise ConnectionError(f"{mechanism}: {error}") from None
    return int(lifetime_ms)
