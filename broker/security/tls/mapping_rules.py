"""`ssl.principal.mapping.rules`: maps a certificate's name to a user (`SslPrincipalMapper`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_RULE = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
_SPLIT = re.compile(r"\s*((DEFAULT)|RULE:(?:\\.|[^\\/])*/(?:\\.|[^\\/])*/[LU]?|.+?)\s*(?:,\s*|$)")
_GROUP = re.compile(r"\$(\d)|\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: re.Pattern[str] | None  # None: DEFAULT
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        result = self.pattern.sub(self._fill_in, name)
        if self.case == "L":
            return result.lower()
        return result.upper() if self.case == "U" else result

    def _fill_in(self, match: re.Match[str]) -> str:
        def part(of: re.Match[str]) -> str:
            if not of[1]:
                return of[2]
            number = int(of[1])
            return of[0] if number > match.re.groups else match[number] or ""

        return _GROUP.sub(part, self.replacement)


class MappingRules:
    """Maps a name by the first rule that matches it in full. Raises ValueError for invalid
    rules."""

    def __init__(self, rules: str) -> None:
        self._rules = [_parse(rule) for rule in split_rules(rules)]

    def user(self, name: str) -> str:
        """Return the user. Raises ValueError if no rule matches: the peer is rejected."""
        for rule in self._rules:
            user = rule.apply(name)
            if user is not None:
                return user
        raise ValueError(f"No rules apply to {name}")


def split_rules(rules: str) -> Sequence[str]:
    """Split rules at commas, which may also occur inside a rule."""
    return [match[1] for match in _SPLIT.finditer(rules.strip() or "DEFAULT") if match[1]]


def _parse(text: str) -> _Rule:
    if text == "DEFAULT":
        return _Rule(None)
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(f"Invalid rule: `{text}`")
    try:
        return _Rule(re.compile(match[2]), match[3], match[4])
    except re.error as error:
        raise ValueError(f"Invalid rule: `{text}`: {error}") from None
