"""Java's property file format, as `java.util.Properties` reads it.

A file is bytes of ISO 8859-1: every byte is a character, and other characters are written
`\\uXXXX`. LF, CR or both end a line. A backslash at the end of a line continues the logical line.
Only the blanks that the format skips are trimmed: values keep trailing blanks, which the types of
settings trim later.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from urteil.broker.config.values import ConfigError

log = logging.getLogger("config")

_BLANKS = " \t\f"
_KEY = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_MARKS = ("\xef\xbb\xbf", "\xff\xfe", "\xfe\xff")


@dataclass(frozen=True, slots=True)
class _Line:
    """A logical line, and the number of the natural line on which it begins."""

    number: int
    text: str


def load_properties(path: Path) -> dict[str, str]:
    """Return the file's properties. Raises OSError, and ConfigError with file and line."""
    text = path.read_bytes().decode("latin-1")
    if text.startswith(_MARKS):
        log.warning(
            "%s begins with a byte order mark, which becomes part of what its first line says, as "
            "in Java: save the file without one",
            path,
        )
    try:
        properties = parse_properties(text)
    except ConfigError as error:
        raise ConfigError(f"{path}, {error}") from None
    _warn_of_utf8(path, text)
    return properties


def parse_properties(text: str) -> dict[str, str]:
    """Return keys and values; the last of two equal keys wins. Raises ConfigError with the line."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        key, value = _split_pair(line.text)
        properties[_unescape(key, line.number)] = _unescape(value, line.number)
    return properties


def _warn_of_utf8(path: Path, text: str) -> None:
    """Warn of UTF-8: Java reads it as ISO 8859-1, which few authors intend."""
    for line in _logical_lines(text):
        if not line.text.isascii() and _is_utf8(line.text):
            log.warning(
                "%s, line %d is UTF-8 and is read as ISO 8859-1, as in Java: write characters "
                "beyond ASCII as \\uXXXX",
                path,
                line.number,
            )


def _is_utf8(text: str) -> bool:
    try:
        text.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _split_pair(line: str) -> tuple[str, str]:
    """Split a line into key and value, both still escaped."""
    key = _KEY.match(line)
    assert key is not None
    separator = _SEPARATOR.match(line, key.end())
    assert separator is not None
    return key.group(), line[separator.end() :]


def _logical_lines(text: str) -> Iterator[_Line]:
    """Logical lines, without comments and blank lines."""
    pending, begun = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = raw.lstrip(_BLANKS)
        if not pending:
            if not line or line[0] in "#!":
                continue
            begun = number
        backslashes = len(line) - len(line.rstrip("\\"))
        is_continued = backslashes % 2 == 1
        pending += line[:-1] if is_continued else line
        if not is_continued:
            yield _Line(begun, pending)
            pending = ""
    if pending or re.search(r"(?:^|[\r\n])[ \t\f]*\\(?:\r\n|\r|\n)?$", text):
        yield _Line(begun, pending)  # Java reads a lone backslash at the very end as an empty key


def _unescape(text: str, number: int) -> str:
    if "\\" not in text:
        return text

    def character(match: re.Match[str]) -> str:
        body = match.group(1)
        if body[0] == "u":
            if len(body) == 1:
                raise ConfigError(
                    f"line {number}: malformed \\uxxxx encoding in {text!r}: write four "
                    "hexadecimal digits after \\u, and \\\\u for a backslash and a u"
                )
            return chr(int(body[1:], 16))
        return _ESCAPES.get(body, body)

    plain = _ESCAPE.sub(character, text)
    return _SURROGATES.sub(_join_surrogates, plain)


def _join_surrogates(pair: re.Match[str]) -> str:
    """Join two UTF-16 halves to one character."""
    return pair.group().encode("utf-16", "surrogatepass").decode("utf-16")
