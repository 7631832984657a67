"""The broker's properties in effect: dynamic settings over the property file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from urteil.broker.config.providers import resolve
from urteil.broker.config.values import RATES, java_trim, known_keys, parse_double

_ROLL = ("log.roll.ms", "log.roll.hours")
_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(_ROLL, _ROLL),
    **dict.fromkeys(_JITTER, _JITTER),
    **dict.fromkeys(_RETENTION, _RETENTION),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
"""Synonyms: properties that set the same value (`DynamicBrokerConfig.brokerConfigSynonyms`)."""

_DOUBLES = tuple(name for name, key in known_keys().items() if key.type == "double")

Subscriber = Callable[[frozenset[str]], None]
"""A callback that receives the names of changed properties, on the loop."""


class LiveProperties(Mapping[str, str]):
    """A mapping that always shows the values in effect.

    Precedence (KIP-226): settings of this broker, settings of all brokers, the file. Defaults are
    absent, and so are throttles of the file, which count only as dynamic settings. One owner calls
    `replace`; readers `subscribe` if they must act on a change.
    """

    def __init__(self, static: Mapping[str, str]) -> None:
        self.static: Mapping[str, str] = dict(static)
        self.cluster_wide: Mapping[str, str] = {}
        self.own: Mapping[str, str] = {}
        self._effective: Mapping[str, str] = self.merge()
        self._subscribers: list[Subscriber] = []

    def __getitem__(self, name: str) -> str:
        return self._effective[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._effective)

    def __len__(self) -> int:
        return len(self._effective)

    def value(self, name: str) -> Any:
        """Return the typed value of a known property, or its default. Raises ConfigError,
        KeyError."""
        key = known_keys()[name]
        return key.parse(self._effective.get(name, key.default))

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    def merge(
        self,
        *,
        cluster_wide: Mapping[str, str] | None = None,
        own: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """Return the values that would be in effect with other dynamic settings. Raises ConfigError
        for a variable that cannot be resolved."""
        merged = {name: value for name, value in self.static.items() if name not in RATES}
        dynamic: dict[str, str] = {}
        for layer in (
            self.cluster_wide if cluster_wide is None else cluster_wide,
            self.own if own is None else own,
        ):
            for name, value in layer.items():
                for synonym in SYNONYMS.get(name, ()):
                    merged.pop(synonym, None)
                    dynamic.pop(synonym, None)
                dynamic[name] = value
        return _with_plain_doubles(merged | resolve(dynamic, merged | dynamic))

    def replace(
        self,
        *,
        cluster_wide: Mapping[str, str] | None = None,
        own: Mapping[str, str] | None = None,
    ) -> None:
        """Replace dynamic settings; call the subscribers if any effective value changed."""
        before, now = self._effective, self.merge(cluster_wide=cluster_wide, own=own)
        if cluster_wide is not None:
            self.cluster_wide = dict(cluster_wide)
        if own is not None:
            self.own = dict(own)
        self._effective = now
        changed = frozenset(
            name for name in before.keys() | now.keys() if before.get(name) != now.get(name)
        )
        if changed:
            for subscriber in self._subscribers:
                subscriber(changed)


def _with_plain_doubles(properties: dict[str, str]) -> dict[str, str]:
    """Rewrite numbers for readers other than Java, which also accepts `0.5d` and `0x1p-1`."""
    for name in _DOUBLES:
        text = properties.get(name, "")
        if parse_double(java_trim(text)) is not None:
            properties[name] = known_keys()[name].display(text) or text
    return properties
