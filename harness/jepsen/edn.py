"""EDN, as far as histories use it: https://github.com/edn-format/edn.

Keywords are `Keyword`, other symbols `Symbol`; maps, vectors and lists, sets become dicts, lists,
tuples' frozensets. A tagged value is the value: `#jepsen.history.Op{...}` is a map.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_TOKEN = re.compile(
    r"""[\s,]+ | ;[^\n]* | (?P<open>\#\{|[\[({]) | (?P<close>[\])}]) | (?P<discard>\#_)
    | (?P<string>"(?:[^"\\]|\\.)*") | (?P<tag>\#:?[A-Za-z][\w.*+!?$%&=<>/-]*)
    | (?P<char>\\(?:newline|space|tab|return|u[0-9A-Fa-f]{4}|.))
    | (?P<atom>(?:\#\#)?[^\s,;"()\[\]{}\\]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "b": "\b", "f": "\f"}
_CHARS = {"newline": "\n", "space": " ", "tab": "\t", "return": "\r"}
_CLOSES = {"[": "]", "(": ")", "{": "}", "#{": "}"}
_WORDS = {"nil": None, "true": True, "false": False}
DEEPEST = 200


class EdnError(ValueError):
    """The text is no EDN; the message names the line."""


class Keyword(str):
    """`:name`, without its colon."""

    __slots__ = ()


class Symbol(str):
    """A bare word."""

    __slots__ = ()


def read_all(text: str) -> Iterator[Any]:
    """Every value of a text, in order. EdnError where it is damaged."""
    reader = _Reader(text)
    while True:
        value = reader.value()
        if value is _END:
            return
        yield value


_END, _CLOSE = object(), object()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._closing = ""
        self._depth = 0

    def value(self) -> Any:
        """The next value, `_END` behind the last one, `_CLOSE` at a closing bracket."""
        while self._at < len(self._text):
            token = _TOKEN.match(self._text, self._at)
            if token is None:
                raise self._error("a character that begins nothing")
            self._at = token.end()
            kind, word = token.lastgroup, token.group()
            if kind == "discard":
                self._one("#_")
            elif kind == "tag":
                return self._one(word)
            elif kind == "open":
                return self._collection(word)
            elif kind == "close":
                self._closing = word
                return _CLOSE if self._depth else self._stray(word)
            elif kind == "string":
                return _ESCAPE.sub(_unescaped, word[1:-1])
            elif kind == "char":
                return _CHARS.get(word[1:]) or _unescaped(re.match(r"\\(.*)", word, re.DOTALL))
            elif kind == "atom":
                return _atom(word)
        return _END

    def _one(self, what: str) -> Any:
        value = self.value()
        if value is _END or value is _CLOSE:
            raise self._error(f"nothing behind {what}")
        return value

    def _stray(self, word: str) -> Any:
        raise self._error(f"a {word} that closes nothing")

    def _collection(self, opened: str) -> Any:
        begin = self._at
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(f"more than {DEEPEST} brackets in each other")
        items = []
        while (item := self.value()) is not _CLOSE:
            if item is _END:
                self._at = begin
                raise self._error(f"a {opened} that is never closed")
            items.append(item)
        self._depth -= 1
        if self._closing != _CLOSES[opened]:
            raise self._error(f"a {opened} closed by {self._closing}")
        if opened == "#{":
            return frozenset(map(_hashable, items))
        if opened != "{":
            return items
        if len(items) % 2:
            raise self._error("a map whose last key has no value")
        return {_hashable(items[n]): items[n + 1] for n in range(0, len(items), 2)}

    def _error(self, what: str) -> EdnError:
        line = self._text.count("\n", 0, self._at) + 1
        return EdnError(f"line {line}: {what}")


def _unescaped(found: Any) -> str:
    code: str = found[1]
    if code[0] == "u" and len(code) == 5:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, code)


def _atom(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    if word[0] == ":":
        return Keyword(word[1:])
    try:
        return int(word.removesuffix("N"))
    except ValueError:
        pass
    try:
        return float(word.removesuffix("M")) if word[0] in "+-0123456789" else Symbol(word)
    except ValueError:
        return Symbol(word)


def _hashable(value: Any) -> Any:
    """A collection as a key: lists as tuples."""
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return tuple((key, _hashable(one)) for key, one in value.items())
    return value


def written(value: Any) -> str:
    """A value as EDN on one line."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Keyword):
        return f":{value}"
    if isinstance(value, (int, Symbol)):
        return str(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(k)} {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + " ".join(map(written, value)) + "]"
    raise TypeError(f"no EDN of {type(value).__name__}")
