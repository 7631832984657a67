"""Settings that a listener overrides with the prefix `listener.name.NAME.`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.broker.config.values import known_keys


class ListenerSettings:
    """The properties of one listener: those with its prefix win."""

    def __init__(self, properties: Mapping[str, str], listener: str) -> None:
        self._properties = properties
        self.prefix = f"listener.name.{listener.lower()}."

    def value(self, name: str) -> Any:
        """Return the typed value or the default. Raises ConfigError."""
        key = known_keys()[name]
        general = self._properties.get(name, key.default)
        return key.parse(self._properties.get(self.prefix + name, general))

    def own_value(self, name: str) -> str | None:
        """Return the raw value of this listener alone, for a mechanism as in
        `plain.sasl.jaas.config`."""
        return self._properties.get(self.prefix + name)
