"""EDN as Clojure prints it, as far as histories use it.

Keywords are `Keyword`, other symbols `Symbol`; maps, vectors, lists and sets become dicts, lists
and frozensets. A tagged value is the value (`#jepsen.history.Op{...}` is a map), metadata is
dropped, a regular expression is its text. Source: https://github.com/edn-format/edn,
clojure.lang.LispReader.

The reader works on bytes decoded as Latin-1, so that its positions are those of the file; a token
with other letters than ASCII is decoded as UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from math import inf, isnan
from typing import Any

from urteil.harness.imports.jepsen.edn_atoms import (
    AtomError,
    Keyword,
    Symbol,
    atom,
    character,
    string,
)

__all__ = ["CLOSE", "END", "EdnError", "Keyword", "Symbol", "read", "read_all", "to_edn"]

_TOKEN = re.compile(
    r"""(?:[\s,]+|;[^\n]*|\#![^\n]*)*+
    (?: (?P<keyword>:[\w.*+!?$%&=<>/-]++)(?=[\s,\])}])
    | (?P<integer>-?(?:0|[1-9][0-9]{0,17}))(?=[\s,\])}])
    | (?P<open>\#\{|[\[({]) | (?P<close>[\])}])
    | "(?P<string>[^"\\]*+(?:\\.[^"\\]*+)*+)" | \#"(?P<regex>[^"\\]*+(?:\\.[^"\\]*+)*+)"
    | (?P<discard>\#_) | (?P<meta>\#?\^)
    | \\(?P<character>[^\s,;"()\[\]{}\\]++|.)
    | \#<(?P<opaque>[^>]*+)>
    | \#'?(?P<namespace>::?[^\s,;"()\[\]{}\\]*+)(?=[\s,]*\{)
    | \#(?P<tag>[^\W\d_][^\s,;"()\[\]{}\\^]*+|=|'(?=[^\s,;"()\[\]{}\\]))
    | (?P<atom>[^\s,;"()\[\]{}\\^@`~]++)
    | (?P<end>\Z) )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_CLOSES = {"[": "]", "(": ")", "{": "}", "#{": "}"}
DEEPEST = 200
END: Any = object()
"""In place of a value behind the last one."""
CLOSE: Any = object()
"""In place of a value at the bracket that closes what a text is within."""


class EdnError(ValueError):
    """The text is not EDN. The message has place and remedy, `at` is the position.

    `is_incomplete`: the text ended too early, and more of it may complete the value.
    """

    def __init__(self, place: str, what: str, *, at: int, is_incomplete: bool = False) -> None:
        super().__init__(f"{place}: {what}")
        self.at, self.what, self.is_incomplete = at, what, is_incomplete


def place(text: str, at: int, line: int = 1, column: int = 0) -> str:
    """Line and column of a position in a text that begins behind `column` of `line`."""
    lines = text.count("\n", 0, at)
    begin = text.rfind("\n", 0, at) + 1
    column = len(text[begin:at].encode("latin-1").decode("utf-8", "replace")) + (
        1 if lines else column + 1
    )
    return f"line {line + lines}, column {column}"


def read_all(text: str) -> Iterator[Any]:
    """Every value of a text, in order. Raises EdnError for a damaged one."""
    raw, at = text.encode("utf-8", "surrogatepass").decode("latin-1"), 0
    while True:
        value, at = read(raw, at)
        if value is END:
            return
        yield value


def read(text: str, at: int, *, within: bool = False) -> tuple[Any, int]:
    """The value that begins at a position, or `END`, and the position of its end. `text` is
    Latin-1.

    A text `within` a vector may be closed: the value is `CLOSE` then.
    """
    reader = _Reader(text, at, within)
    return reader.value(), reader.at


class _Reader:
    def __init__(self, text: str, at: int, within: bool) -> None:
        self._text = text
        self.at = at
        self._closing = ""
        self._depth = self._within = int(within)
        self._outermost = at

    def value(self) -> Any:
        """The next value, `END` behind the last one, `CLOSE` at a closing bracket."""
        while True:
            token = _TOKEN.match(self._text, self.at)
            if token is None:
                raise self._syntax_error()
            self.at = token.end()
            kind = token.lastgroup
            assert kind is not None
            word = token[kind]
            if kind == "keyword":
                return Keyword(word[1:])
            if kind == "integer":
                return int(word)
            if kind == "open":
                return self._collection(word)
            if kind == "close":
                self._closing = word
                return CLOSE if self._depth else self._reject_closing(word)
            if kind == "end":
                return END
            if kind in ("discard", "meta"):
                self._read_value("#_" if kind == "discard" else "^")
                if kind == "meta":
                    return self._read_value("metadata")
            else:
                return self._convert_token(kind, word, token)

    def _convert_token(self, kind: str, word: str, token: re.Match[str]) -> Any:
        if not word.isascii():
            word = self._decode_word(word, token.start(kind))
        try:
            if kind == "string":
                return string(word)
            if kind == "character":
                return character(word)
            if kind == "atom":
                return atom(word)
        except AtomError as error:
            is_incomplete = token.end() == len(self._text)
            raise self._error(str(error), token.start(kind), is_incomplete=is_incomplete) from None
        if kind == "tag":
            return self._read_value(f"#{word}")
        if kind == "namespace":
            return self._qualified_map(word.lstrip(":"))
        return word if kind == "regex" else Symbol(f"#<{word}>")

    def _decode_word(self, word: str, at: int) -> str:
        try:
            return word.encode("latin-1").decode("utf-8")
        except UnicodeDecodeError as error:
            what = "text that is not UTF-8; expected UTF-8"
            is_incomplete = self.at == len(self._text)
            raise self._error(what, at + error.start, is_incomplete=is_incomplete) from None

    def _qualified_map(self, namespace: str) -> dict[Any, Any]:
        """`#:ns{:a 1}`: keywords without a namespace have this one, those in `_` have none."""
        entries: dict[Any, Any] = {}
        for key, value in self._read_value(f"#:{namespace}").items():
            if isinstance(key, (Keyword, Symbol)) and key.startswith("_/"):
                key = type(key)(key[2:])
            elif isinstance(key, (Keyword, Symbol)) and "/" not in key and namespace:
                key = type(key)(f"{namespace}/{key}")
            entries[key] = value
        return entries

    def _read_value(self, what: str) -> Any:
        value = self.value()
        if value is END or value is CLOSE:
            at = self.at - (value is CLOSE)
            raise self._error(
                f"nothing behind {what}; expected a value", at, is_incomplete=value is END
            )
        return value

    def _reject_closing(self, word: str) -> Any:
        raise self._error(f"a {word} that closes nothing; remove it, or add what opens it",
                          self.at - 1)  # fmt: skip

    def _collection(self, opened: str) -> Any:
        begin = self.at - len(opened)
        if self._depth == self._within:
            self._outermost = begin
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._error(f"more than {DEEPEST} brackets in each other", begin)
        items = []
        while (item := self.value()) is not CLOSE:
            if item is END:
                raise self._unclosed_error()
            items.append(item)
        self._depth -= 1
        if self._closing != _CLOSES[opened]:
            raise self._error(f"a {opened} closed by {self._closing}; expected "
                              f"{_CLOSES[opened]}", self.at - 1)  # fmt: skip
        if opened == "#{":
            return frozenset(map(_hashable, items))
        if opened != "{":
            return items
        if len(items) % 2:
            raise self._error("a map whose last key has no value; expected are pairs of a key and "
                              "a value", begin)  # fmt: skip
        return {_hashable(items[n]): items[n + 1] for n in range(0, len(items), 2)}

    def _unclosed_error(self) -> EdnError:
        """The error names the outermost bracket, where the damage begins."""
        opened = "#{" if self._text[self._outermost] == "#" else self._text[self._outermost]
        what = f"a {opened} that is never closed; add its {_CLOSES[opened]}"
        return self._error(what, self._outermost, is_incomplete=True)

    def _syntax_error(self) -> EdnError:
        begun = re.compile(r"(?:[\s,]+|;[^\n]*)*", re.ASCII).match(self._text, self.at)
        at = begun.end() if begun else self.at
        rest = self._text[at : at + 2]
        if rest[:1] == '"' or rest == '#"':
            return self._error('a " that is never closed; add its "', at, is_incomplete=True)
        is_incomplete = len(self._text) - at < 8 or rest == "#<"
        return self._error(f"{self._decoded_prefix(at)} does not begin a value of EDN; expected "
                           "a value", at, is_incomplete=is_incomplete)  # fmt: skip

    def _decoded_prefix(self, at: int) -> str:
        return self._text[at : at + 8].encode("latin-1").decode("utf-8", "replace")[:4]

    def _error(self, what: str, at: int | None = None, *, is_incomplete: bool = False) -> EdnError:
        at = self.at if at is None else at
        return EdnError(place(self._text, at), what, at=at, is_incomplete=is_incomplete)


def _hashable(value: Any) -> Any:
    """A collection as a key: lists as tuples."""
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        entries = ((key, _hashable(nested)) for key, nested in value.items())
        return tuple(sorted(entries, key=repr))
    return value


def to_edn(value: Any) -> str:
    """A value as EDN on one line."""
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Keyword):
        return f":{value}"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, (int, Symbol, Fraction)):
        return str(value)
    if isinstance(value, Decimal):
        return f"{value}M"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_edn(k)} {to_edn(v)}" for k, v in value.items()) + "}"
    if isinstance(value, frozenset):
        return "#{" + " ".join(sorted(map(to_edn, value))) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + " ".join(map(to_edn, value)) + "]"
    raise TypeError(f"no EDN of {type(value).__name__}")


def _float(value: float) -> str:
    if isnan(value):
        return "##NaN"
    return repr(value) if abs(value) != inf else "##Inf" if value > 0 else "##-Inf"
