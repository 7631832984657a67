"""Values of properties: parsing by Kafka's types, with Kafka's error messages."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from urteil.broker.config.broker_keys import INTERNAL, TABLE
from urteil.broker.config.topic_keys import TABLE as TOPIC_TABLE
from urteil.broker.config.validators import BROKER_CHECKS, TOPIC_CHECKS, Check, in_range

Value = bool | int | float | str | list[str] | None

_RANGES = {
    "short": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
}
_INTEGER = re.compile(r"[+-]?0*(\d{1,20})")
_DOUBLE = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<word>NaN|Infinity)"
    r"|(?P<decimal>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"|(?P<hex>0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?)"
)
_CONTROLS = "".join(map(chr, range(33)))
_COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")


def java_trim(text: str) -> str:
    """Trim blanks and control characters at both ends (`String.trim`)."""
    return text.strip(_CONTROLS)


def comma_parts(text: str) -> list[str]:
    """Split at commas and trim the parts."""
    return _COMMA.split(text)


def parse_int(text: str) -> int | None:
    """Parse as Java's `Integer.parseInt`; None for an invalid number."""
    return parse_integer(text, "int")


def parse_integer(text: str, kind: str) -> int | None:
    """Parse a `short`, `int` or `long` as Java does, digits of all scripts included."""
    match = _INTEGER.fullmatch(text)
    if match is None or any(ord(digit) > 0xFFFF for digit in match.group(1)):
        return None
    number = int(match.group(1)) * (-1 if text[0] == "-" else 1)
    low, high = _RANGES[kind]
    return number if low <= number <= high else None


def parse_double(text: str) -> float | None:
    """Parse as Java's `Double.parseDouble`; None for an invalid number."""
    match = _DOUBLE.fullmatch(text)
    if match is None:
        return None
    plain = match["word"] or match["decimal"]
    size = float(plain) if plain else _hexadecimal(match["hex"])
    return -size if match["sign"] == "-" else size


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return math.inf


class ConfigError(ValueError):
    """An invalid property. The message names property and value, as Kafka's does."""


def violated_rule(what: str) -> ConfigError:
    """The error for a violated rule between properties, in Apache Kafka's words."""
    return ConfigError(f"requirement failed: {what}")


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """A known property: type, default as written (None is null) and checks."""

    name: str
    type: str
    default: str | None
    checks: tuple[Check, ...] = ()
    is_internal: bool = False
    """The property is read and checked, but never shown."""

    def parse(self, raw: str | None) -> Value:
        """Return the typed value. Raises ConfigError with property and value."""
        if raw is None:
            return None
        value = self._parse(java_trim(raw))
        for check in self.checks:
            if (complaint := check(value)) is not None:
                raise self.refuse(*complaint)
        return value

    def display(self, raw: str | None) -> str | None:
        """Return the value as Apache Kafka prints it (`ConfigDef.convertToString`)."""
        value = self._parse(java_trim(raw)) if raw is not None else None
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float):
            return _java_double(value)
        if isinstance(value, list):
            return ",".join(value)
        return None if value is None else str(value)

    def _parse(self, text: str) -> Value:
        if self.type in _RANGES:
            return self._integer(text)
        if self.type == "boolean":
            return self._boolean(text)
        if self.type == "double":
            return self._double(text)
        if self.type == "list":
            return list(comma_parts(text)) if text else []
        return text

    def _integer(self, text: str) -> int:
        number = parse_integer(text, self.type)
        if number is None:
            raise self.refuse(text, f"Not a number of type {self.type.upper()}")
        return number

    def _boolean(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise self.refuse(text, "Expected value to be either true or false")
        return text.lower() == "true"

    def _double(self, text: str) -> float:
        number = parse_double(text)
        if number is None:
            raise self.refuse(text, "Not a number of type DOUBLE")
        return number

    def refuse(self, value: object, why: str) -> ConfigError:
        shown = "[hidden]" if self.type == "password" else value
        return ConfigError(f"Invalid value {shown} for configuration {self.name}: {why}")


def _java_double(value: float) -> str:
    """Format like `Double.toString`: with an exponent from ten million up and below a
    thousandth."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, rest = digits[0], "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{first}.{rest}E{exponent + len(digits) - 1}"


def _key(
    name: str, kind: str, default: str, limits: str, check: Check | None, *, is_internal: bool
) -> ConfigKey:
    checks = [in_range(limits)] if limits else []
    if check is not None:
        checks.append(check)
    standing = "" if default == "''" else default or None
    return ConfigKey(name, kind, standing, tuple(checks), is_internal)


@cache
def known_keys() -> dict[str, ConfigKey]:
    """Return all broker properties of Kafka 3.9 in ZooKeeper mode, and ours (`urteil.*`)."""
    keys = {}
    for table, is_internal in ((TABLE, False), (INTERNAL, True)):
        for line in table.splitlines():
            name, kind, default, limits = line.split("|")
            check = BROKER_CHECKS.get(name)
            keys[name] = _key(name, kind, default, limits, check, is_internal=is_internal)
    for name in ("urteil.hosts.file", "urteil.metrics.listener"):
        keys[name] = ConfigKey(name, "string", None)
    return keys


@cache
def topic_keys() -> dict[str, tuple[ConfigKey, tuple[str, ...]]]:
    """Return all topic settings, each with the broker properties of its default (first wins)."""
    keys = {}
    for line in TOPIC_TABLE.splitlines():
        name, kind, default, limits, synonyms = line.split("|")
        key = _key(name, kind, default, limits, TOPIC_CHECKS.get(name), is_internal=False)
        keys[name] = (key, tuple(filter(None, synonyms.split(","))))
    return keys


def parse_properties(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return all known broker properties, with defaults. Raises ConfigError."""
    return {
        name: key.parse(properties.get(name, key.default)) for name, key in known_keys().items()
    }


# Dynamic only, never in the file (`QuotaConfigs.brokerQuotaConfigs`).
UNLIMITED = 2**63 - 1
RATES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


@cache
def rate_keys() -> dict[str, ConfigKey]:
    """Return the keys of the throttles in bytes per second, by broker."""
    return {name: ConfigKey(name, "long", str(UNLIMITED), (in_range("0.."),)) for name in RATES}
