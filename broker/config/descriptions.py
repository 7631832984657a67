"""Descriptions of settings for DescribeConfigs: value, source, synonyms and type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile

from urteil.broker.config.live_properties import SYNONYMS, LiveProperties
from urteil.broker.config.mutable_keys import DYNAMIC
from urteil.broker.config.reconfiguration import base_name
from urteil.broker.config.values import RATES, ConfigKey, known_keys, rate_keys, topic_keys

# ConfigSource and ConfigType of the protocol
TOPIC, OWN_DYNAMIC, CLUSTER_WIDE, STATIC_BROKER, DEFAULT, LOGGER = range(1, 7)
UNKNOWN_TYPE = 0
TYPES = {
    "boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7,
    "class": 8, "password": 9,
}  # fmt: skip

_UNITS_MS = {"hours": 3_600_000, "minutes": 60_000}


@dataclass(frozen=True, slots=True)
class Origin:
    """One source of a value, with the value as it is written there."""

    name: str
    value: str | None
    source: int


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in effect, with its sources in order of precedence."""

    name: str
    key: ConfigKey | None  # None: an unknown setting, which may be a secret
    value: str | None
    origins: tuple[Origin, ...]
    read_only: bool

    @property
    def source(self) -> int:
        return self.origins[0].source if self.origins else DEFAULT

    @property
    def type(self) -> int:
        return TYPES[self.key.type] if self.key else UNKNOWN_TYPE

    @property
    def sensitive(self) -> bool:
        return self.key is None or self.key.type == "password"

    @property
    def documentation(self) -> str | None:
        """The documentation of the setting; empty for a name that is not in the table (a
        listener's)."""
        if self.key is None or self.key.name != self.name or self.name in RATES:
            return None
        default = "null" if self.key.default is None else self.key.default or "empty"
        return f"{self.key.type}, {default} by default"


def topic_settings(
    broker_properties: LiveProperties, overrides: Mapping[str, str]
) -> Iterator[Setting]:
    """Return every topic setting: the topic's value, else the broker's, else Kafka's default."""
    for name, (key, names) in topic_keys().items():
        origins = _list_origins(names[0], broker_properties) if names else ()
        value: str | None = overrides.get(name)
        if value is not None:
            value = key.display(value)
            origins = (Origin(name, value, TOPIC), *origins)
        else:
            value = _broker_value(name, names, broker_properties)
            value = key.display(key.default if value is None else value)
        yield Setting(name, key, value, origins, read_only=False)


def _broker_value(
    name: str, synonyms: tuple[str, ...], properties: Mapping[str, str]
) -> str | None:
    """The first broker property that is set, in the topic's unit."""
    for synonym in synonyms:
        if synonym in properties:
            return _to_ms(synonym, name, properties[synonym])
    return None


def _to_ms(synonym: str, name: str, value: str) -> str:
    """Convert the broker's coarser units to the topic's ms."""
    factor = _UNITS_MS.get(synonym.rpartition(".")[2])
    if factor is None or not name.endswith(".ms"):
        return value
    return str(int(value) * factor) if int(value) >= 0 else value


def broker_settings(properties: LiveProperties) -> Iterator[Setting]:
    """Return every broker property, in effect or by default, unknown ones included."""
    keys = known_keys()
    names = dict.fromkeys([*keys, *properties])
    for name in names:
        if name in keys and keys[name].is_internal:
            continue
        key = _key(name)
        raw = properties.get(name, key.default if key else None)
        if name == "node.id" and name not in properties:
            raw = properties.get("broker.id", raw)
        value = key.display(raw) if key is not None and raw is not None else None
        yield Setting(
            name, key, value, _list_origins(name, properties), read_only=name not in DYNAMIC
        )


def cluster_wide_settings(properties: LiveProperties) -> Iterator[Setting]:
    """Return the settings for all brokers, as they were written."""
    for name, value in properties.cluster_wide.items():
        origins = [
            origin for origin in _list_origins(name, properties) if origin.source == CLUSTER_WIDE
        ]
        key = _key(name)
        shown = value if key is not None else None
        yield Setting(name, key, shown, tuple(origins), read_only=name not in DYNAMIC)


def _key(name: str) -> ConfigKey | None:
    """The table's entry for a property, without the prefix of a listener."""
    base = base_name(name)
    return known_keys().get(name) or rate_keys().get(name) or known_keys().get(base)


def _list_origins(name: str, properties: LiveProperties) -> tuple[Origin, ...]:
    """The sources of a broker property's value (`ConfigHelper.configSynonyms`).

    Sources under other names count only after the first one under its own name, as in Kafka.
    """
    static = dict(properties.static)
    if "broker.id" in static:
        static.setdefault("node.id", static["broker.id"])
    names = SYNONYMS.get(name, tuple(dict.fromkeys((name, base_name(name)))))
    defaults = {name: key.default for name in names if (key := known_keys().get(name)) is not None}
    layers: tuple[tuple[Mapping[str, str | None], int], ...] = (
        (properties.own, OWN_DYNAMIC),
        (properties.cluster_wide, CLUSTER_WIDE),
        (static, STATIC_BROKER),
        (defaults, DEFAULT),
    )
    key = _key(name)
    hidden = key is None or key.type == "password"
    origins = [
        Origin(name, None if hidden else value, source)
        for layer, source in layers
        for name in names
        if (value := layer.get(name)) is not None
    ]
    return tuple(dropwhile(lambda origin: origin.name != name, origins))
