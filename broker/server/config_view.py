"""Settings as DescribeConfigs shows them: value, where it comes from, its synonyms, its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile

from urteil.broker.server.config_dynamic import DYNAMIC
from urteil.broker.server.config_values import ConfigKey, known_keys

# ConfigSource and ConfigType of the protocol
TOPIC, STATIC_BROKER, DEFAULT = 1, 4, 5
TYPES = {
    "boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7,
    "class": 8, "password": 9,
}  # fmt: skip

# Topic settings: name, type, default, broker properties that give the default (first wins).
_TOPIC_TABLE = """\
cleanup.policy|list|delete|log.cleanup.policy
compression.gzip.level|int|-1|compression.gzip.level
compression.lz4.level|int|9|compression.lz4.level
compression.type|string|producer|compression.type
compression.zstd.level|int|3|compression.zstd.level
delete.retention.ms|long|86400000|log.cleaner.delete.retention.ms
file.delete.delay.ms|long|60000|log.segment.delete.delay.ms
flush.messages|long|9223372036854775807|log.flush.interval.messages
flush.ms|long|9223372036854775807|log.flush.interval.ms,log.flush.scheduler.interval.ms
follower.replication.throttled.replicas|list||
index.interval.bytes|int|4096|log.index.interval.bytes
leader.replication.throttled.replicas|list||
local.retention.bytes|long|-2|log.local.retention.bytes
local.retention.ms|long|-2|log.local.retention.ms
max.compaction.lag.ms|long|9223372036854775807|log.cleaner.max.compaction.lag.ms
max.message.bytes|int|1048588|message.max.bytes
message.downconversion.enable|boolean|true|log.message.downconversion.enable
message.format.version|string|3.0-IV1|log.message.format.version
message.timestamp.after.max.ms|long|9223372036854775807|log.message.timestamp.after.max.ms
message.timestamp.before.max.ms|long|9223372036854775807|log.message.timestamp.before.max.ms
message.timestamp.difference.max.ms|long|9223372036854775807|\
log.message.timestamp.difference.max.ms
message.timestamp.type|string|CreateTime|log.message.timestamp.type
min.cleanable.dirty.ratio|double|0.5|log.cleaner.min.cleanable.ratio
min.compaction.lag.ms|long|0|log.cleaner.min.compaction.lag.ms
min.insync.replicas|int|1|min.insync.replicas
preallocate|boolean|false|log.preallocate
remote.log.copy.disable|boolean|false|
remote.log.delete.on.disable|boolean|false|
remote.storage.enable|boolean|false|
retention.bytes|long|-1|log.retention.bytes
retention.ms|long|604800000|log.retention.ms,log.retention.minutes,log.retention.hours
segment.bytes|int|1073741824|log.segment.bytes
segment.index.bytes|int|10485760|log.index.size.max.bytes
segment.jitter.ms|long|0|log.roll.jitter.ms,log.roll.jitter.hours
segment.ms|long|604800000|log.roll.ms,log.roll.hours
unclean.leader.election.enable|boolean|false|unclean.leader.election.enable
"""

_UNITS_MS = {"hours": 3_600_000, "minutes": 60_000}

_ROLL = ("log.roll.ms", "log.roll.hours")
_JITTER = ("log.roll.jitter.ms", "log.roll.jitter.hours")
_RETENTION = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_SYNONYMS = {
    **dict.fromkeys(_ROLL, _ROLL),
    **dict.fromkeys(_JITTER, _JITTER),
    **dict.fromkeys(_RETENTION, _RETENTION),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
"""Broker properties that stand in for one another (`DynamicBrokerConfig.brokerConfigSynonyms`)."""


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
    for line in _TOPIC_TABLE.splitlines():
        name, kind, default, synonyms = line.split("|")
        names = [one for one in synonyms.split(",") if one]
        origins = _origins(names[0], broker_properties) if names else ()
        value: str | None = overrides.get(name)
        if value is not None:
            origins = (Origin(name, value, TOPIC), *origins)
        else:
            value = _of_the_broker(name, names, broker_properties)
            value = default if value is None else value
        yield Setting(name, TYPES[kind], value, origins, read_only=False, sensitive=False)


def _of_the_broker(name: str, synonyms: list[str], properties: Mapping[str, str]) -> str | None:
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
    names = _SYNONYMS.get(name, (name,))
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
