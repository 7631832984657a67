"""The interface of SASL mechanisms on the broker's side."""

from __future__ import annotations

from typing import Protocol

from urteil.broker.security.principals import Principal


class Denied(Exception):
    """Authentication failed; the text is sent to the peer (`SaslAuthenticationException`)."""


class BrokenExchange(Exception):
    """The exchange failed; the reason is not sent, since it might reveal which users exist
    (`SaslException`)."""


class MalformedMessage(BrokenExchange):
    """A message that no implementation of the mechanism sends; it gets no response."""


class Exchange(Protocol):
    """The exchange with one peer: `step` answers its messages until `is_complete`.

    `expires_at_ms`: when the credential expires (None: never).
    """

    is_complete: bool
    principal: Principal
    expires_at_ms: float | None

    def step(self, message: bytes) -> bytes:
        """Answer a message. Raises Denied, BrokenExchange."""
        ...


class Login(Protocol):
    """The client side, for a broker that authenticates to another one."""

    def step(self, challenge: bytes | None) -> bytes | None:
        """Return the message for a challenge (None: the first message); None at the end. Raises
        Denied, BrokenExchange if the server cannot prove its identity."""
        ...
