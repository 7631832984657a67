"""Parsing of single property values by Kafka's types, with Kafka's complaints."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from urteil.broker.server import topic_table
from urteil.broker.server.config_checks import BROKER_CHECKS, TOPIC_CHECKS, Check, at_least
from urteil.broker.server.config_table import TABLE

Value = bool | int | float | str | list[str] | None

_RANGES = {
    "short": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
}
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def parse_int(text: str) -> int | None:
    """As Java's `Integer.parseInt`; None for what is no such number."""
    low, high = _RANGES["int"]
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and low <= number <= high else None


class ConfigError(ValueError):
    """A property with a value that cannot be; the text names both, as Kafka's does."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One known property: its type, its default as written (None is null), what it may be."""

    name: str
    type: str
    default: str | None
    checks: tuple[Check, ...] = ()

    def parse(self, raw: str | None) -> Value:
        """The typed value. Raises ConfigError naming property and value."""
        if raw is None:
            return None
        value = self._typed(raw.strip())
        for check in self.checks:
            if (complaint := check(value)) is not None:
                raise self.refuse(*complaint)
        return value

    def shown(self, raw: str | None) -> str | None:
        """The value as Apache Kafka writes it (`ConfigDef.convertToString`)."""
        value = self._typed(raw.strip()) if raw is not None else None
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, float):
            return _java_double(value)
        if isinstance(value, list):
            return ",".join(value)
        return None if value is None else str(value)

    def _typed(self, text: str) -> Value:
        if self.type in _RANGES:
            return self._integer(text)
        if self.type == "boolean":
            return self._boolean(text)
        if self.type == "double":
            return self._double(text)
        if self.type == "list":
            return [part.strip() for part in text.split(",")] if text else []
        return text

    def _integer(self, text: str) -> int:
        low, high = _RANGES[self.type]
        number = int(text) if _INTEGER.fullmatch(text) else None
        if number is None or not low <= number <= high:
            raise self.refuse(text, f"Not a number of type {self.type.upper()}")
        return number

    def _boolean(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise self.refuse(text, "Expected value to be either true or false")
        return text.lower() == "true"

    def _double(self, text: str) -> float:
        if not _DOUBLE.fullmatch(text):
            raise self.refuse(text, "Not a number of type DOUBLE")
        return float(text)

    def refuse(self, value: object, why: str) -> ConfigError:
        shown = "[hidden]" if self.type == "password" else value
        return ConfigError(f"Invalid value {shown} for configuration {self.name}: {why}")


def _java_double(value: float) -> str:
    """`Double.toString`: an exponent from ten millions on and below a thousandth."""
    if value == 0 or 1e-3 <= abs(value) < 1e7 or not math.isfinite(value):
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    first, rest = digits[0], "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{first}.{rest}E{exponent + len(digits) - 1}"


def _key(name: str, kind: str, default: str, minimum: str, check: Check | None) -> ConfigKey:
    checks = [at_least(int(minimum))] if minimum else []
    if check is not None:
        checks.append(check)
    return ConfigKey(name, kind, "" if default == "''" else default or None, tuple(checks))


@cache
def known_keys() -> dict[str, ConfigKey]:
    """Every broker property of Kafka 3.9 in ZooKeeper mode, and ours (`urteil.*`)."""
    keys = {}
    for line in TABLE.splitlines():
        name, kind, default, minimum = line.split("|")
        keys[name] = _key(name, kind, default, minimum, BROKER_CHECKS.get(name))
    for name in ("urteil.hosts.file", "urteil.metrics.listener"):
        keys[name] = ConfigKey(name, "string", None)
    return keys


@cache
def topic_keys() -> dict[str, tuple[ConfigKey, tuple[str, ...]]]:
    """Every topic setting, with the broker properties that give its default (first wins)."""
    keys = {}
    for line in topic_table.TABLE.splitlines():
        name, kind, default, minimum, synonyms = line.split("|")
        key = _key(name, kind, default, minimum, TOPIC_CHECKS.get(name))
        keys[name] = (key, tuple(filter(None, synonyms.split(","))))
    return keys


# Set while the broker runs, never in its file (`QuotaConfigs.brokerQuotaConfigs`).
UNLIMITED = 2**63 - 1
RATES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


@cache
def rate_keys() -> dict[str, ConfigKey]:
    """Bytes a second, by broker."""
    return {name: ConfigKey(name, "long", str(UNLIMITED), (at_least(0),)) for name in RATES}
