"""Names of users and clients as nodes of ZooKeeper (`Sanitizer`)."""

from __future__ import annotations

from urllib.parse import quote, unquote


def sanitize(name: str) -> str:
    """Percent-encoded but for letters, digits, `.`, `-` and `_`."""
    return quote(name, safe="").replace("~", "%7E")


def desanitize(name: str) -> str:
    """The inverse."""
    return unquote(name)
