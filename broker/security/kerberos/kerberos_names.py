"""`sasl.kerberos.principal.to.local.rules`: maps Kerberos principals to users
(`KerberosShortNamer`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NAME = re.compile(r"([^/@]*)(?:/([^/@]*))?@([^/@]*)")
_RULE = re.compile(
    r"(DEFAULT)|RULE:\[(\d*):([^\]]*)\](?:\(([^)]*)\))?(?:s/([^/]*)/([^/]*)/(g)?)?/?([LU])?"
)
_PARAMETER = re.compile(r"\$(\d*)")
_GROUP = re.compile(r"\$(\d)|\\(.)")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule. `parts` None: DEFAULT, the first part of a name of the broker's own realm."""

    components: int | None = None
    shape: str = ""
    match: re.Pattern[str] | None = None
    pattern: re.Pattern[str] | None = None
    replacement: str = ""
    everywhere: bool = False
    case: str = ""

    def apply(self, name: Sequence[str], realm: str) -> str | None:
        """Apply the rule; `name` is realm, service and an optional host. Raises ValueError for a
        result that is not a simple name."""
        if self.components is None:
            return name[1] if name[0] == realm else None
        if self.components != len(name) - 1:
            return None
        base = _PARAMETER.sub(lambda match: _part(name, match), self.shape)
        if self.match is not None and not self.match.fullmatch(base):
            return None
        if self.pattern is not None:
            base = self.pattern.sub(self._fill_in, base, count=0 if self.everywhere else 1)
        if "/" in base or "@" in base:
            raise ValueError(f"Non-simple name {base} after a rule of auth_to_local")
        return {"L": base.lower, "U": base.upper}.get(self.case, base.__str__)()

    def _fill_in(self, match: re.Match[str]) -> str:
        def part(of: re.Match[str]) -> str:
            return (match[int(of[1])] or "") if of[1] else of[2]

        return _GROUP.sub(part, self.replacement)


def _part(name: Sequence[str], match: re.Match[str]) -> str:
    number = int(match[1] or 0)
    if number >= len(name):
        raise ValueError(f"a rule asks for part {number} of a name with {len(name) - 1}")
    return name[number]


class PrincipalRules:
    """Maps a principal by the first matching rule. Raises ValueError for invalid rules."""

    def __init__(self, rules: Sequence[str], default_realm: str) -> None:
        self._rules = [_parse(rule) for rule in rules or ("DEFAULT",)]
        self._realm = default_realm

    def user(self, principal: str) -> str:
        """Return the user of `service/host@REALM`. Raises ValueError if no rule matches."""
        match = _NAME.fullmatch(principal)
        if match is None:
            if "@" in principal:
                raise ValueError(f"Malformed Kerberos name: {principal}")
            return principal
        service, host, realm = match[1], match[2], match[3]
        name = (realm, service) if host is None else (realm, service, host)
        for rule in self._rules:
            user = rule.apply(name, self._realm)
            if user is not None:
                return user
        raise ValueError(f"No rules apply to {principal}")


def _parse(text: str) -> _Rule:
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"Invalid rule: `{text}`")
    if match[1]:
        return _Rule()
    try:
        return _Rule(
            components=int(match[2] or 0),
            shape=match[3],
            match=None if match[4] is None else re.compile(match[4]),
            pattern=None if match[5] is None else re.compile(match[5]),
            replacement=match[6] or "",
            everywhere=bool(match[7]),
            case=match[8] or "",
        )
    except re.error as error:
        raise ValueError(f"Invalid rule: `{text}`: {error}") from None
