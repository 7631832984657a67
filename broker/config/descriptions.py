"""Settings as DescribeConfigs shows them: value, where it comes from, its synonyms, its type."""

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
    """One place a value may come from, as it is written there."""

    name: str
    value: str | None
    source: int


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting in effect, with its origins in order of precedence."""

    name: str
    key: ConfigKey | None  # None: nothing is known of it, so it may be a secret
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
        """What it takes, in words; none for what is known by another name (a listener's)."""
        if self.key is None or self.key.name != self.name or self.name in RATES:
            return None
        default = "null" if self.key.default is None else self.key.default or "empty"
        return f"{self.key.type}, {default} by default"


def topic_settings(
    broker_properties: LiveProperties, overrides: Mapping[str, str]
) -> Iterator[Setting]:
    """Every topic setting: the topic's own value, else the broker's, else Kafka's default."""
    for name, (key, names) in topic_keys().items():
        origins = _origins(names[0], broker_properties) if names else ()
        value: str | None = overrides.get(name)
        if value is not None:
            value = key.shown(value)
            origins = (Origin(name, value, TOPIC), *origins)
        else:
            value = _of_the_broker(name, names, broker_properties)
            value = key.shown(key.default if value is None else value)
        yield Setting(name, key, value, origins, read_only=False)


def _of_the_broker(
    name: str, synonyms: tuple[str, ...], properties: Mapping[str, str]
) -> str | None:
    """The first property that is set, in the topic's unit."""
    for one in synonyms:
        if one in properties:
            return _in_ms(one, name, properties[one])
    return None


def _in_ms(synonym: str, name: str, value: str) -> str:
    """The broker's coarser units in the topic's ms."""
    factor = _UNITS_MS.get(synonym.rpartition(".")[2])
    if factor is None or not name.endswith(".ms"):
        return value
    return str(int(value) * factor) if int(value) >= 0 else value


def broker_settings(properties: LiveProperties) -> Iterator[Setting]:
    """Every broker property: in effect, else Kafka's default; those nobody knows too."""
    keys = known_keys()
    names = dict.fromkeys([*keys, *properties])
    for name in names:
        if name in keys and keys[name].is_internal:
            continue
        key = _key(name)
        raw = properties.get(name, key.default if key else None)
        if name == "node.id" and name not in properties:
            raw = properties.get("broker.id", raw)
        value = key.shown(raw) if key is not None and raw is not None else None
        yield Setting(name, key, value, _origins(name, properties), read_only=name not in DYNAMIC)


def cluster_wide_settings(properties: LiveProperties) -> Iterator[Setting]:
    """What was set for all brokers, as it was written."""
    for name, value in properties.cluster_wide.items():
        origins = [one for one in _origins(name, properties) if one.source == CLUSTER_WIDE]
        key = _key(name)
        shown = value if key is not None else None
        yield Setting(name, key, shown, tuple(origins), read_only=name not in DYNAMIC)


def _key(name: str) -> ConfigKey | None:
    """What is known of a property; of a listener's, what is known of it for all listeners."""
    base = base_name(name)
    return known_keys().get(name) or rate_keys().get(name) or known_keys().get(base)


def _origins(name: str, properties: LiveProperties) -> tuple[Origin, ...]:
    """Where a broker property's value comes from (`ConfigHelper.configSynonyms`).

    Origins under other names count only after the first under its own, as in Kafka.
    """
    static = dict(properties.static)
    if "broker.id" in static:
        static.setdefault("node.id", static["broker.id"])
    names = SYNONYMS.get(name, tuple(dict.fromkeys((name, base_name(name)))))
    defaults = {one: key.default for one in names if (key := known_keys().get(one)) is not None}
    layers: tuple[tuple[Mapping[str, str | None], int], ...] = (
        (properties.own, OWN_DYNAMIC),
        (properties.cluster_wide, CLUSTER_WIDE),
        (static, STATIC_BROKER),
        (defaults, DEFAULT),
    )
    key = _key(name)
    hidden = key is None or key.type == "password"
    found = [
        Origin(one, None if hidden else value, source)
        for layer, source in layers
        for one in names
        if (value := layer.get(one)) is not None
    ]
    return tuple(dropwhile(lambda origin: origin.name != name, found))
