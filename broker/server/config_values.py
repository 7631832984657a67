"""Parsing of single property values by Kafka's types, with Kafka's complaints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from urteil.broker.server.config_table import TABLE

Value = bool | int | float | str | list[str] | None

_RANGES = {
    "short": (-(2**15), 2**15 - 1),
    "int": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
}


class ConfigError(ValueError):
    """A property with a value that cannot be; the text names both, as Kafka's does."""


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One known property: its type, its default as written (None is null), its minimum."""

    name: str
    type: str
    default: str | None
    minimum: int | None

    def parse(self, raw: str | None) -> Value:
        """The typed value. Raises ConfigError naming property and value."""
        if raw is None:
            return None
        text = raw.strip()
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
        try:
            number = int(text)
        except ValueError:
            raise self.refuse(text, f"Not a number of type {self.type.upper()}") from None
        if not low <= number <= high:
            raise self.refuse(text, f"Not a number of type {self.type.upper()}")
        if self.minimum is not None and number < self.minimum:
            raise self.refuse(text, f"Value must be at least {self.minimum}")
        return number

    def _boolean(self, text: str) -> bool:
        if text.lower() not in ("true", "false"):
            raise self.refuse(text, "Expected value to be either true or false")
        return text.lower() == "true"

    def _double(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise self.refuse(text, "Not a number of type DOUBLE") from None

    def refuse(self, text: str, why: str) -> ConfigError:
        shown = "[hidden]" if self.type == "password" else text
        return ConfigError(f"Invalid value {shown} for configuration {self.name}: {why}")


@cache
def known_keys() -> dict[str, ConfigKey]:
    """Every broker property of Kafka 3.9 in ZooKeeper mode, and ours (`urteil.*`)."""
    keys = {}
    for line in TABLE.splitlines():
        name, kind, default, minimum = line.split("|")
        value = "" if default == "''" else default or None
        keys[name] = ConfigKey(name, kind, value, int(minimum) if minimum else None)
    for name in ("urteil.hosts.file", "urteil.metrics.listener"):
        keys[name] = ConfigKey(name, "string", None, None)
    return keys
