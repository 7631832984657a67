"""`sasl.jaas.config`: a login module with its options (`JaasConfig` of Apache Kafka)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/|"(?P<quoted>(?:\\.|[^"\\\n])*)"|'(?P<single>(?:\\.|[^'\\\n])*)'"""
    r"|(?P<word>[A-Za-z_$\u00a0-\uffff][\w$.-]*)|(?P<sign>.)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = ("required", "requisite", "sufficient", "optional")


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A class name with its options, which are secret and not printed."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginModule:
    """Parse exactly one module. Raises ValueError without the text, which contains secrets."""
    modules = list(_modules(text))
    if not modules:
        raise ValueError("Login module not specified in JAAS config")
    if len(modules) != 1:
        raise ValueError(
            f"JAAS config property contains {len(modules)} login modules, should be 1 module"
        )
    return modules[0]


def _modules(text: str) -> Iterator[LoginModule]:
    tokens = _tokens(text)
    for kind, name in tokens:
        if kind == "sign":
            raise ValueError("Login module not specified in JAAS config")
        _, flag = next(tokens, ("", ""))
        if not flag:
            raise ValueError("Login module control flag not specified in JAAS config")
        if flag.lower() not in _FLAGS:
            raise ValueError("Login module control flag is not available in the JAAS config")
        yield LoginModule(name, _options(tokens))


def _options(tokens: Iterator[tuple[str, str]]) -> dict[str, str]:
    options: dict[str, str] = {}
    for kind, key in tokens:
        if (kind, key) == ("sign", ";"):
            return options
        sign, (value_kind, value) = next(tokens, ("", "")), next(tokens, ("sign", ""))
        if kind == "sign" or sign != ("sign", "=") or value_kind == "sign":
            shown = key if kind == "word" else "?"
            raise ValueError(f"Value not specified for key '{shown}' in JAAS config")
        options[key] = value
    raise ValueError("JAAS config entry not terminated by semi-colon")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        if match["quoted"] is not None or match["single"] is not None:
            yield "text", _ESCAPE.sub(_unescape, match["quoted"] or match["single"] or "")
        elif match["word"]:
            yield "word", match["word"]
        elif match["sign"]:
            yield "sign", match["sign"]


def _unescape(match: re.Match[str]) -> str:
    what = match[1]
    return chr(int(what, 8)) if what[0].isdigit() else _LETTERS.get(what, what)
