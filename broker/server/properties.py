"""Java's property file format, as far as server.properties uses it."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*([ \t\f]*[=:][ \t\f]*|[ \t\f]+)")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values of a property file; the last of two equal keys wins (java.util.Properties).

    Values keep trailing blanks in Java; Kafka trims every value when it parses it, so do we.
    """
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        separator = _SEPARATOR.search(line)
        key, value = (line, "")
        if separator is not None:
            key, value = line[: separator.start(1)], line[separator.end(1) :]
        found[_unescape(key)] = _unescape(value).strip()
    return found


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", _escape, text)


def _escape(match: re.Match[str]) -> str:
    body = match.group(1)
    if len(body) == 5:
        return chr(int(body[1:], 16))
    return _ESCAPES.get(body, body)
