"""SASL PLAIN (RFC 4616) with the users of the JAAS configuration (`PlainServerCallbackHandler`)."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from urteil.broker.security.principals import ANONYMOUS, USER, Principal
from urteil.broker.security.sasl.sasl_exchange import BrokenExchange, Denied

PLAIN = "PLAIN"
_USER_OPTION = "user_"


class PlainExchange:
    """The broker side. The client sends one message: authorization id, user and password,
    separated by NUL."""

    expires_at_ms: float | None = None

    def __init__(self, options: Mapping[str, str]) -> None:
        """`options` of the login module: `user_alice="secret"`."""
        self._options = options
        self.is_complete = False
        self.principal = ANONYMOUS

    def step(self, message: bytes) -> bytes:
        try:
            tokens = message.decode().split("\0")
        except UnicodeDecodeError:
            raise BrokenExchange("Invalid SASL/PLAIN response: not UTF-8") from None
        if len(tokens) != 3:
            raise BrokenExchange(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}"
            )
        authorization_id, user, password = tokens
        if not user or not password:
            missing = "password" if user else "username"
            raise BrokenExchange(f"Authentication failed: {missing} not specified")
        expected_password = self._options.get(_USER_OPTION + user)
        is_equal = hmac.compare_digest((expected_password or "").encode(), password.encode())
        if expected_password is None or not is_equal:
            raise Denied("Authentication failed: Invalid username or password")
        if authorization_id and authorization_id != user:
            raise Denied(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        self.is_complete = True
        self.principal = Principal(USER, user)
        return b""


class PlainLogin:
    """The client side: sends `username` and `password` of the login module."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._message = f"\0{options.get('username', '')}\0{options.get('password', '')}".encode()

    def step(self, challenge: bytes | None) -> bytes | None:
        return self._message if challenge is None else None
