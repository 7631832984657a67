"""Principals: the identity of a peer in ACLs, quotas and the audit log."""

from __future__ import annotations

from dataclasses import dataclass, field

USER = "User"


@dataclass(frozen=True, slots=True)
class Principal:
    """A type and a name, written `User:alice` (`KafkaPrincipal`). Equality ignores
    `token_authenticated` (authenticated by a delegation token, KIP-48)."""

    type: str
    name: str
    token_authenticated: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""The principal without authentication: PLAINTEXT, or SSL without a client certificate."""


def parse_principal(text: str) -> Principal:
    """Parse a principal (`SecurityUtils.parseKafkaPrincipal`). Raises ValueError."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(
            f"expected a string in format principalType:principalName but got {text or None}"
        )
    return Principal(kind, name)
