"""SASL OAUTHBEARER (RFC 7628, KIP-255): a client authenticates with a token that the validator
accepts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from urteil.broker.security.principals import ANONYMOUS, USER, Principal
from urteil.broker.security.sasl.sasl_exchange import BrokenExchange, Denied

OAUTHBEARER = "OAUTHBEARER"
_FIRST = re.compile(
    r"n,(?:a=(?P<authorization_id>(?:[^\0,=]|=2C|=3D)+))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]*\x01)*)\x01"
)
_BEARER = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)")
_AFTER_REFUSAL = b"\x01"


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its principal and its expiry."""

    subject: str
    expires_at_ms: float


class TokenRefused(ValueError):
    """The token is rejected; `scope` is set if the token lacks it."""

    def __init__(self, why: str, scope: str | None = None) -> None:
        super().__init__(why)
        self.scope = scope

    def response(self) -> str:
        """The error response for the peer (RFC 7628, 3.2.2)."""
        if self.scope is None:
            return '{"status":"invalid_token"}'
        return f'{{"status":"insufficient_scope", "scope":"{self.scope}"}}'


class Validator(Protocol):
    """Validates a token or raises TokenRefused."""

    def validate(self, token: str) -> Token: ...


class OAuthBearerExchange:
    """The broker's side: one message of the client; after a rejection, a second message
    acknowledges the error response."""

    def __init__(self, validator: Validator) -> None:
        self._validator = validator
        self._refusal = ""
        self.is_complete = False
        self.principal = ANONYMOUS
        self.expires_at_ms: float | None = None

    def step(self, message: bytes) -> bytes:
        if self._refusal and message == _AFTER_REFUSAL:
            raise Denied(self._refusal)
        self._refusal = ""
        authorization_id, text = _parse_message(message)
        try:
            token = self._validator.validate(text)
        except TokenRefused as refused:
            self._refusal = refused.response()
            return self._refusal.encode()
        if authorization_id and authorization_id != token.subject:
            raise Denied(
                "Authentication failed: Client requested an authorization id "
                f"({authorization_id}) that is different from the token's principal name "
                f"({token.subject})"
            )
        self.is_complete = True
        self.principal = Principal(USER, token.subject)
        self.expires_at_ms = token.expires_at_ms
        return b""


def _parse_message(message: bytes) -> tuple[str, str]:
    """Return the authorization id and the token."""
    match = _FIRST.fullmatch(message.decode("utf-8", "replace"))
    if match is None:
        raise BrokenExchange("Invalid OAUTHBEARER client first message")
    pairs = dict(pair.partition("=")[::2] for pair in match["pairs"].split("\x01") if pair)
    bearer = _BEARER.fullmatch(pairs.get("auth", ""))
    if bearer is None:
        raise BrokenExchange("Invalid OAUTHBEARER client first message: 'auth' not specified")
    if bearer["scheme"].lower() != "bearer":
        raise BrokenExchange("Invalid scheme in OAUTHBEARER client first message")
    authorization_id = (match["authorization_id"] or "").replace("=2C", ",").replace("=3D", "=")
    return authorization_id, bearer["token"]


class OAuthBearerLogin:
    """The client's side: sends a token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def step(self, challenge: bytes | None) -> bytes | None:
        if challenge is None:
            return f"n,,\x01auth=Bearer {self._token}\x01\x01".encode()
        if challenge:
            raise BrokenExchange(f"the token is refused: {challenge.decode('utf-8', 'replace')}")
        return None
