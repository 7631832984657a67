"""The properties as one listener has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.broker.config.values import known_keys


class ListenerSettings:
    """What has the listener's prefix stands above the rest."""

    def __init__(self, properties: Mapping[str, str], listener: str) -> None:
        self._properties = properties
        self.prefix = f"listener.name.{listener.lower()}."

    def value(self, name: str) -> Any:
        """Typed; the default where nothing is set. Raises ConfigError."""
        key = known_keys()[name]
        general = self._properties.get(name, key.default)
        return key.parse(self._properties.get(self.prefix + name, general))

    def own(self, name: str) -> str | None:
        """What is set for this listener alone; of a mechanism by `plain.sasl.jaas.config`."""
        return self._properties.get(self.prefix + name)
