"""The broker's properties in effect: its file, under what administrators set while it runs."""

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
"""Properties that stand in for one another (`DynamicBrokerConfig.brokerConfigSynonyms`)."""

_DOUBLES = tuple(name for name, key in known_keys().items() if key.type == "double")

Subscriber = Callable[[frozenset[str]], None]
"""Called on the loop with the names of the properties that are other now."""


class LiveProperties(Mapping[str, str]):
    """A mapping of what is in effect, that changes; who keeps it sees every change.

    Precedence (KIP-226): what was set for this broker, for all brokers, in the file. Defaults are
    not in it, nor are throttles of the file: those are only ever set while brokers run. One owner
    calls `replace`; others read, and `subscribe` when they must act.
    """

    def __init__(self, static: Mapping[str, str]) -> None:
        self.static: Mapping[str, str] = dict(static)
        self.cluster_wide: Mapping[str, str] = {}
        self.own: Mapping[str, str] = {}
        self._effective: Mapping[str, str] = self.merged()
        self._subscribers: list[Subscriber] = []

    def __getitem__(self, name: str) -> str:
        return self._effective[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._effective)

    def __len__(self) -> int:
        return len(self._effective)

    def value(self, name: str) -> Any:
        """A known property's typed value, its default without one. Raises ConfigError, KeyError."""
        key = known_keys()[name]
        return key.parse(self._effective.get(name, key.default))

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    def merged(
        self,
        *,
        cluster_wide: Mapping[str, str] | None = None,
        own: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """What would be in effect with other settings for all brokers or for this one. Raises
        ConfigError for what stands elsewhere and cannot be read."""
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
        """Take on other settings and tell the subscribers, if any property is other now."""
        before, now = self._effective, self.merged(cluster_wide=cluster_wide, own=own)
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
    """Written so that every reader of numbers understands them: Java knows `0.5d` and `0x1p-1`."""
    for name in _DOUBLES:
        text = properties.get(name, "")
        if parse_double(java_trim(text)) is not None:
            properties[name] = known_keys()[name].shown(text) or text
    return properties
