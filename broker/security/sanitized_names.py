"""Names of users and clients, encoded as ZooKeeper node names (`Sanitizer`)."""

from __future__ import annotations

from urllib.parse import quote, unquote


def sanitize(name: str) -> str:
    """Percent-encode all but letters, digits, `.`, `-` and `_`."""
    return quote(name, safe="").replace("~", "%7E")


def desanitize(name: str) -> str:
    """Decode a sanitized name."""
    return unquote(name)
