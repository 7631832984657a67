"""The atoms of EDN and of Clojure's printer: numbers, strings, characters, keywords and symbols.

Source: https://github.com/edn-format/edn; clojure.lang.LispReader for what Clojure reads beyond it.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import inf, nan
from typing import Any

_INTEGER = re.compile(
    r"([+-]?)(?:(0|[1-9][0-9]*)|0[xX]([0-9A-Fa-f]+)|0([0-7]+)|([1-9][0-9]?)[rR]([0-9A-Za-z]+))N?"
)
_DECIMAL = re.compile(r"([+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)M")
_FLOAT = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)")
_RATIO = re.compile(r"([+-]?[0-9]+)/([0-9]+)")
_NUMERIC = re.compile(r"[+-]?[0-9]")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[0-3]?[0-7]{1,2}|[^u0-9])", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "b": "\b", "f": "\f"}
_CHARACTERS = {"newline": "\n", "space": " ", "tab": "\t", "return": "\r", "backspace": "\b",
               "formfeed": "\f"}  # fmt: skip
_CODED = re.compile(r"u([0-9A-Fa-f]{4})|o([0-3]?[0-7]{1,2})")
_SURROGATE = re.compile("[\ud800-\udfff]")
LONGEST = 400
"""Digits of a decimal number that becomes an integer: more than a float has."""
_WORDS = {"nil": None, "true": True, "false": False, "##Inf": inf, "##-Inf": -inf, "##NaN": nan}


class AtomError(ValueError):
    """The text is not an atom. The message says why, and what is expected."""


class Keyword(str):
    """`:name`, without its colon."""

    __slots__ = ()


class Symbol(str):
    """A bare word."""

    __slots__ = ()


def atom(word: str) -> Any:
    """The value of a bare word: a number, a keyword, a symbol, nil, a boolean."""
    if word[0] == ":":
        if len(word) == 1:
            raise AtomError("a colon without a name; a keyword is :name")
        return Keyword(word[1:])
    if word in _WORDS:
        return _WORDS[word]
    if _NUMERIC.match(word):
        return number(word)
    if word[0] == "#":
        raise AtomError(f"{word} is not valid EDN; expected a value")
    return Symbol(word)


def number(word: str) -> int | float | Decimal | Fraction:
    """The value of `12`, `-0x1F`, `017`, `2r101`, `12N`, `1.0E6`, `1.5M`, `1/3`."""
    try:
        if match := _INTEGER.fullmatch(word):
            return _integer(match)
        if _FLOAT.fullmatch(word):
            return float(word)
        if match := _DECIMAL.fullmatch(word):
            return Decimal(match[1])
        if (match := _RATIO.fullmatch(word)) and int(match[2]):
            ratio = Fraction(int(match[1]), int(match[2]))
            return int(ratio) if ratio.denominator == 1 else ratio
    except (ValueError, InvalidOperation):
        pass
    raise AtomError(
        f"{word[:40]} is not a number; expected a number such as 12, 0x1F, 1.5, 1.0E6, 1/3"
    )


def _integer(match: re.Match[str]) -> int:
    sign, plain, hexadecimal, octal, radix, digits = match.groups()
    if plain is not None:
        value = int(plain)
    elif radix is not None:
        value = int(digits, int(radix))
    else:
        value = int(hexadecimal, 16) if hexadecimal is not None else int(octal, 8)
    return -value if sign == "-" else value


def string(inner: str) -> str:
    """The text between the quotes of a string, its escapes resolved."""
    if "\\" not in inner:
        return inner
    text = _ESCAPE.sub(_unescape, inner)
    return _join_surrogates(text) if _SURROGATE.search(text) else text


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "u":
        return chr(int(code[1:], 16)) if len(code) == 5 else _unknown_character(code)
    if code.isdigit():
        return chr(int(code, 8))
    return _ESCAPES[code] if code in _ESCAPES else _unknown_character(code)


def _unknown_character(code: str) -> str:
    raise AtomError(
        f'\\{code} is not an escape of a string; expected \\n \\t \\r \\b \\f \\" \\\\, '
        "\\u and four digits, or octal digits"
    )


def _join_surrogates(text: str) -> str:
    """Pairs of surrogates as the one character that they mean, a lone one as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def character(name: str) -> str:
    """The character of `\name`: itself, its name, or its code."""
    if len(name) == 1:
        return name
    if name in _CHARACTERS:
        return _CHARACTERS[name]
    if match := _CODED.fullmatch(name):
        code = chr(int(match[1], 16) if match[1] else int(match[2], 8))
        return _join_surrogates(code)
    raise AtomError(
        f"\\{name} is not a character; expected a character such as \\a, \\newline, \\u0041"
    )


def as_integer(value: Any) -> int | None:
    """A number without a fraction as an integer, whatever its notation."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, Decimal) and value.adjusted() > LONGEST:
        return None
    if isinstance(value, (float, Decimal, Fraction)):
        try:
            return int(value) if value == int(value) else None
        except (ValueError, OverflowError):
            return None
    return None
