"""What all SASL mechanisms have in common, seen from the broker's side."""

from __future__ import annotations

from typing import Protocol

from urteil.broker.security.principals import Principal


class Denied(Exception):
    """The peer is not who it says; the text is told to it (`SaslAuthenticationException`)."""


class BrokenExchange(Exception):
    """The exchange cannot go on; why is not told to the peer, who might learn from it which users
    there are (`SaslException`)."""


class MalformedMessage(BrokenExchange):
    """No peer that knows the mechanism says that: it is not answered at all."""


class Exchange(Protocol):
    """One peer's way through a mechanism: `step` answers its messages until it `is_complete`.

    `expires_at_ms`: when what it showed is no longer worth anything (None: never).
    """

    is_complete: bool
    principal: Principal
    expires_at_ms: float | None

    def step(self, message: bytes) -> bytes:
        """The answer to a message. Raises Denied, BrokenExchange."""
        ...


class Login(Protocol):
    """The other side, for a broker that shows another one who it is."""

    def step(self, challenge: bytes | None) -> bytes | None:
        """The message that answers a challenge (None: the first); None when nothing is left to
        say. Raises Denied, BrokenExchange for a server that is not who it should be."""
        ...
