"""Settings as DescribeConfigs shows them: value, where it comes from, its synonyms, its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile

from urteil.broker.server.config_dynamic import DYNAMIC
from urteil.broker.server.config_values import ConfigKey, known_keys, topic_keys
from urteil.broker.server.live_properties import SYNONYMS

# ConfigSource and ConfigType of the protocol
TOPIC, STATIC_BROKER, DEFAULT = 1, 4, 5
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
    type: int
    value: str | None
    origins: tuple[Origin, ...]
    read_only: bool
    sensitive: bool

    @property
    def source(self) -> int:
        return self.origins[0].source if self.origins else DEFAULT


def topic_settings(
    broker_properties: Mapping[str, str], overrides: Mapping[str, str]
) -> Iterator[Setting]:
    """Every topic setting: the topic's own value, else the broker's, else Kafka's default."""
    for name, (key, names) in topic_keys().items():
        origins = _origins(names[0], broker_properties) if names else ()
        value: str | None = overrides.get(name)
        if value is not None:
            origins = (Origin(name, value, TOPIC), *origins)
        else:
            value = _of_the_broker(name, names, broker_properties)
            value = key.default if value is None else value
        yield Setting(name, TYPES[key.type], value, origins, read_only=False, sensitive=False)


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


def _origins(name: str, properties: Mapping[str, str]) -> tuple[Origin, ...]:
    """Where a broker property's value comes from (`ConfigHelper.configSynonyms`).

    Origins under other names count only after the first under its own, as in Kafka.
    """
    keys = known_keys()
    names = SYNONYMS.get(name, (name,))
    found = []
    for one in names:
        if one in properties:
            found.append(Origin(one, _shown(keys[one], properties[one]), STATIC_BROKER))
    for one in names:
        if keys[one].default is not None:
            found.append(Origin(one, _shown(keys[one], keys[one].default), DEFAULT))
    return tuple(dropwhile(lambda origin: origin.name != name, found))


def broker_settings(broker_properties: Mapping[str, str]) -> Iterator[Setting]:
    """Every broker property: as written in the file, else Kafka's default."""
    properties = dict(broker_properties)
    if "broker.id" in properties:
        properties.setdefault("node.id", properties["broker.id"])
    for key in known_keys().values():
        origins = _origins(key.name, properties)
        value = origins[0].value if origins else None
        sensitive = key.type == "password"
        read_only = key.name not in DYNAMIC
        yield Setting(key.name, TYPES[key.type], value, origins, read_only, sensitive)


def _shown(key: ConfigKey, value: str | None) -> str | None:
    return None if key.type == "password" else value
