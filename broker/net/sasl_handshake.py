"""SASL handshake: on a SASL listener a connection authenticates before any other request.

Until then the broker answers ApiVersions and SaslHandshake, in this order, and then the messages of
the mechanism: inside SaslAuthenticate after a handshake of version 1, bare after one of version 0.
Other requests close the connection. A failure is answered after a delay (KIP-306). A connection may
authenticate again before its session ends (KIP-368). Source: `SaslServerAuthenticator`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from enum import Enum
from typing import Any

from urteil.broker.net.connection import Connection, Hangup
from urteil.broker.net.sasl_mechanisms import SaslMechanisms
from urteil.broker.security.principals import Principal
from urteil.broker.security.sasl.sasl_exchange import (
    BrokenExchange,
    Denied,
    Exchange,
    MalformedMessage,
)
from urteil.broker.security.sasl.scram import Find
from urteil.broker.wire.api_keys import ApiKey
from urteil.broker.wire.errors import ErrorCode
from urteil.broker.wire.framing import RequestHeader, decode_request_header, encode_response
from urteil.broker.wire.messages import (
    REQUESTS,
    RESPONSES,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from urteil.broker.wire.primitives import WireError
from urteil.broker.wire.schema import Message

log = logging.getLogger("security")

MIN_REAUTHENTICATION_INTERVAL_S = 1.0
_API_VERSIONS_ERROR = slice(8, 10)  # after size and correlation id


class _State(Enum):
    FIRST = 1  # ApiVersions or the handshake
    HANDSHAKE = 2
    EXCHANGE = 3
    OTHER_MECHANISM = 4  # than the connection was opened with: refused at its next message
    OPEN = 5


class SaslHandshake:
    """Answers the frames of one connection until its peer is authenticated; from then on `serve`
    does."""

    def __init__(
        self,
        connection: Connection,
        mechanisms: SaslMechanisms,
        find: Callable[[str], Find],
        now_ms: Callable[[], float],
    ) -> None:
        """Replaces the connection's `answer`. `find` returns the credentials of a mechanism."""
        self._connection = connection
        self._mechanisms = mechanisms
        self._find = find
        self._now_ms = now_ms
        self._serve, self._max_bytes = connection.answer, connection.max_frame_bytes
        connection.answer = self.answer
        self._state = _State.FIRST
        self._mechanism = ""
        self._is_wrapped = False
        self._exchange: Exchange | None = None
        self._known: Principal | None = None
        self._expires_s: float | None = None
        self._reauthenticated_s: float | None = None
        connection.max_frame_bytes = mechanisms.max_receive_bytes

    async def answer(self, connection: Connection, frame: memoryview) -> list[Any] | None:
        """Answer a frame. Raises Hangup, after a delay if authentication failed."""
        if self._state is _State.OPEN and not self._begins_again(frame):
            if self._expires_s is not None and connection.time() > self._expires_s:
                raise Hangup  # not logged: the peer did not authenticate again
            return await self._serve(connection, frame)
        try:
            return await self._admit(connection, frame)
        except _AuthenticationFailed as failure:
            await asyncio.sleep(self._mechanisms.failure_delay_ms / 1000)  # KIP-306
            raise Hangup(f"authentication failed: {failure}", failure.answer) from None
        except (Hangup, ConnectionError):
            raise
        except Exception:
            log.exception("SASL failed")
            raise Hangup("authentication failed") from None

    def _begins_again(self, frame: memoryview) -> bool:
        """Whether the frame begins a reauthentication (KIP-368)."""
        now_s = self._connection.time()
        if self._expires_s is None or bytes(frame[:2]) != ApiKey.SASL_HANDSHAKE.to_bytes(2, "big"):
            return False
        before_s = self._reauthenticated_s
        if before_s is not None and now_s - before_s < MIN_REAUTHENTICATION_INTERVAL_S:
            return False
        self._reauthenticated_s = now_s
        self._is_wrapped = False
        self._state = _State.HANDSHAKE
        return True

    async def _admit(self, connection: Connection, frame: memoryview) -> list[Any] | None:
        if self._state is _State.OTHER_MECHANISM:
            raise _AuthenticationFailed(
                f"SASL mechanism '{self._mechanism}' requested by client is not supported for "
                "re-authentication"
            )
        if self._state is not _State.EXCHANGE:
            return await self._prepare(connection, frame)
        if not self._is_wrapped:
            return self._answer_bare(frame)
        return self._answer_wrapped(frame)

    # -- before the mechanism's own messages ----------------------------------------------------

    async def _prepare(self, connection: Connection, frame: memoryview) -> list[Any] | None:
        try:
            header, pos = decode_request_header(frame)
        except WireError as error:
            header, pos = RequestHeader(-1, 0, 0, None), 0
            why = str(error)
        else:
            why = f"unknown API {header.api_key}"
        if header.api_key not in REQUESTS:
            if self._state is _State.FIRST and self._known is None:
                raise _AuthenticationFailed(f"no SASL handshake: {why}")
            raise Hangup(why)
        if header.api_key == ApiKey.API_VERSIONS and self._known is None:
            return await self._answer_api_versions(connection, frame)
        if header.api_key != ApiKey.SASL_HANDSHAKE:
            raise _AuthenticationFailed(
                f"Unexpected Kafka request of type {ApiKey(header.api_key).name} during SASL "
                "handshake."
            )
        return self._handshake(header, _decode_message(header, frame, pos))

    async def _answer_api_versions(
        self, connection: Connection, frame: memoryview
    ) -> list[Any] | None:
        if self._state is not _State.FIRST:
            raise Hangup("Unexpected ApiVersions request received during SASL authentication")
        answer = await self._serve(connection, frame)
        if b"".join(answer or ())[_API_VERSIONS_ERROR] == b"\0\0":
            self._state = _State.HANDSHAKE
        return answer

    def _handshake(self, header: RequestHeader, request: Any) -> list[Any]:
        assert isinstance(request, SaslHandshakeRequest)
        chosen = request.mechanism
        offered = list(self._mechanisms.mechanisms)
        if chosen not in offered:
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            refusal = SaslHandshakeResponse(error_code=error, mechanisms=offered)
            raise _AuthenticationFailed(
                "Unsupported SASL mechanism", _encode_message(header, refusal)
            )
        self._is_wrapped = header.api_version >= 1
        if self._known is not None and chosen != self._mechanism:
            self._state = _State.OTHER_MECHANISM
        else:
            self._mechanism = chosen
            self._exchange = self._mechanisms.exchange(chosen, self._find(chosen))
            self._state = _State.EXCHANGE
        return _encode_message(header, SaslHandshakeResponse(mechanisms=offered))

    # -- the mechanism's messages ---------------------------------------------------------------

    def _answer_bare(self, frame: memoryview) -> list[Any]:
        try:
            token = self._step(bytes(frame))
        except Denied as denied:
            raise _AuthenticationFailed(str(denied)) from None
        except BrokenExchange as broken:
            raise Hangup(f"authentication failed: {broken}") from None
        self._end_when_complete()
        return [len(token).to_bytes(4, "big") + token]

    def _answer_wrapped(self, frame: memoryview) -> list[Any]:
        try:
            header, pos = decode_request_header(frame)
        except WireError as error:
            raise Hangup(f"bad request header: {error}") from None
        if header.api_key != ApiKey.SASL_AUTHENTICATE:
            raise _out_of_place(header, frame, pos)
        request = _decode_message(header, frame, pos)
        assert isinstance(request, SaslAuthenticateRequest)
        try:
            token = self._step(bytes(request.auth_bytes))
        except Denied as denied:
            raise _refusal(header, str(denied), str(denied)) from None
        except MalformedMessage as nonsense:
            raise Hangup(f"authentication failed: {nonsense}") from None
        except BrokenExchange as broken:
            text = "authentication" if self._known is None else "re-authentication"
            message = (
                f"Authentication failed during {text} due to invalid credentials with SASL "
                f"mechanism {self._mechanism}"
            )
            raise _refusal(header, message, str(broken)) from None
        lifetime_ms = self._end_when_complete()
        answer = SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms)
        return _encode_message(header, answer)

    def _step(self, message: bytes) -> bytes:
        assert self._exchange is not None
        token = self._exchange.step(message)
        if self._exchange.is_complete and self._known not in (None, self._exchange.principal):
            raise Denied(
                f"Cannot change principals during re-authentication from {self._known}: "
                f"{self._exchange.principal}"
            )
        return token

    def _end_when_complete(self) -> int:
        """Let requests pass if the exchange is complete; return the session's lifetime in ms, 0
        without limit."""
        exchange, connection = self._exchange, self._connection
        if exchange is None or not exchange.is_complete:
            return 0
        self._known = connection.principal = exchange.principal
        self._exchange = None
        self._state = _State.OPEN
        connection.max_frame_bytes = self._max_bytes
        lifetime_ms = self._lifetime_ms(exchange)
        if lifetime_ms is None:
            self._expires_s = None
            connection.answer = self._serve  # no session to enforce
            return 0
        self._expires_s = connection.time() + lifetime_ms / 1000
        return lifetime_ms

    def _lifetime_ms(self, exchange: Exchange) -> int | None:
        limits = []
        if exchange.expires_at_ms is not None:
            limits.append(max(int(exchange.expires_at_ms - self._now_ms()), 0))
        if self._mechanisms.max_session_ms[self._mechanism]:
            limits.append(self._mechanisms.max_session_ms[self._mechanism])
        return min(limits) if limits else None


class _AuthenticationFailed(Exception):
    """Authentication failed: send `answer`, if there is one, after a delay, then close."""

    def __init__(self, why: str, answer: list[Any] | None = None) -> None:
        super().__init__(why)
        self.answer = answer


def _refusal(header: RequestHeader, message: str, why: str) -> _AuthenticationFailed:
    error = ErrorCode.SASL_AUTHENTICATION_FAILED
    answer = SaslAuthenticateResponse(error_code=error, error_message=message)
    return _AuthenticationFailed(why, _encode_message(header, answer))


def _out_of_place(header: RequestHeader, frame: memoryview, pos: int) -> Exception:
    """Reject a request that is out of order, with a response of its own type if that has an error
    field."""
    if header.api_key not in REQUESTS:
        return Hangup(f"unknown API {header.api_key}")
    request = _decode_message(header, frame, pos)
    name = ApiKey(header.api_key).name
    why = f"Unexpected Kafka request of type {name} during SASL authentication."
    if isinstance(request, ProduceRequest) and request.acks == 0:
        return Hangup(why)
    kind = RESPONSES[header.api_key]
    has_error = any(field.name == "error_code" for field in kind.FIELDS)
    answer = kind(error_code=ErrorCode.ILLEGAL_SASL_STATE) if has_error else kind()
    return _AuthenticationFailed(why, _encode_message(header, answer))


def _decode_message(header: RequestHeader, frame: memoryview, pos: int) -> Message:
    """Decode a request. Raises Hangup, also for an unsupported version."""
    message = REQUESTS[header.api_key]
    if not message.MIN_VERSION <= header.api_version <= message.MAX_VERSION:
        raise Hangup(f"unsupported version {header.api_version} of {message.__name__}")
    try:
        return message.decode(header.api_version, frame, pos)[0]
    except WireError as error:
        raise Hangup(f"bad {message.__name__}: {error}") from None


def _encode_message(header: RequestHeader, message: Message) -> list[Any]:
    return list(encode_response(header.api_key, header.api_version, header.correlation_id, message))
