"""Who is at the other end of a connection, as ACLs, quotas and the audit log name them."""

from __future__ import annotations

from dataclasses import dataclass, field

USER = "User"


@dataclass(frozen=True, slots=True)
class Principal:
    """A type and a name, written `User:alice` (`KafkaPrincipal`). Two are the same however they
    proved it: `token_authenticated` (by a delegation token, KIP-48) does not count."""

    type: str
    name: str
    token_authenticated: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""Who gave no proof of anything: PLAINTEXT, or SSL without a client certificate."""


def parse_principal(text: str) -> Principal:
    """The inverse of `str` (`SecurityUtils.parseKafkaPrincipal`). Raises ValueError."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(
            f"expected a string in format principalType:principalName but got {text or None}"
        )
    return Principal(kind, name)
