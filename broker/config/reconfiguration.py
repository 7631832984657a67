"""Validation of dynamic broker settings, with Apache Kafka's words (ConfigError).

Source: `DynamicBrokerConfig.validateConfigs` and the reconfigurable parts of Apache Kafka 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from urteil.broker.config.cross_checks import check_properties, retention_ms
from urteil.broker.config.java_classes import JMX
from urteil.broker.config.listeners import parse_listeners, security_protocols
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.config.mutable_keys import DYNAMIC, PER_BROKER, SECURITY
from urteil.broker.config.values import (
    ConfigError,
    ConfigKey,
    known_keys,
    parse_properties,
    rate_keys,
)

_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)")
_OF_THE_CLUSTER = ("max.connections", "max.connection.creation.rate", "num.network.threads")
"""Settings of listeners that all brokers may share."""

_THREADS = (
    "background.threads", "num.io.threads", "num.network.threads",
    "num.recovery.threads.per.data.dir", "num.replica.fetchers",
)  # fmt: skip
_LIMITS = ("max.connections", "max.connection.creation.rate")
LISTENERS = frozenset(("advertised.listeners", "listener.security.protocol.map", "listeners"))
"""Settings that only the file may have here. Apache Kafka opens and closes listeners while it runs;
this broker does not."""


def is_password(name: str) -> bool:
    """Whether the value is a secret (`DynamicBrokerConfig.isPasswordConfig`)."""
    return name.endswith(_PASSWORDS)


_PASSWORDS = tuple(
    sorted(name for name, key in known_keys().items() if key.type == "password" and name in DYNAMIC)
)


def base_name(name: str) -> str:
    """Return the name without the prefix of a listener."""
    match = _LISTENER.fullmatch(name)
    return match.group(1) if match else name


def key_of(name: str) -> ConfigKey | None:
    """Return the table's entry for a setting that may change while the broker runs."""
    if name in rate_keys():
        return rate_keys()[name]
    return known_keys().get(name) if name in DYNAMIC else None


def check_names(configs: Iterable[str], *, per_broker: bool) -> None:
    """Raise ConfigError for names that may not be set dynamically. Unknown names, which a plugin
    may use, are allowed."""
    names = list(configs)
    static = [name for name in names if name in known_keys() and name not in DYNAMIC]
    _refuse(static, "Cannot update these configs dynamically: Set")
    _refuse(
        [name for name in names if name in SECURITY],
        "These security configs can be dynamically updated only per-listener using the listener "
        "prefix: HashSet",
    )
    if not per_broker:
        _refuse(
            [name for name in names if is_per_broker(name)],
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "Set",
        )


def is_per_broker(name: str) -> bool:
    """Whether only a single broker may have the setting."""
    of_a_listener = _LISTENER.fullmatch(name)
    if of_a_listener:
        return of_a_listener.group(1) not in _OF_THE_CLUSTER
    return name in PER_BROKER


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise ConfigError(f"{why}({', '.join(names)})")


def check_value(name: str, value: str) -> None:
    """Raise ConfigError for a value of the wrong type or range, or an unsupported class."""
    key = key_of(base_name(name))
    if key is None:
        return
    key.parse(value)
    if key.type == "class" and value != key.default:
        raise key.refuse(value, f"Class {value} could not be found.")


def validate(properties: LiveProperties, configs: Mapping[str, str], *, per_broker: bool) -> None:
    """Check settings that would replace all settings of this broker, or of all. Raises
    ConfigError."""
    check_names(configs, per_broker=True)
    for name, value in configs.items():
        check_value(name, value)
    check_names(configs, per_broker=per_broker)
    merged = properties.merge(**{"own" if per_broker else "cluster_wide": configs})
    if known_keys()["log.cleaner.threads"].parse(merged.get("log.cleaner.threads")) == 0:
        raise ConfigError("/ by zero")  # the complete message of Apache Kafka
    check_properties(merged)
    _check_listeners(properties, merged, [name for name in configs if name in LISTENERS])
    check_step(properties, LiveProperties(merged))


def _check_listeners(now: LiveProperties, then: Mapping[str, str], changed: Sequence[str]) -> None:
    """Check the listeners; errors in values come before errors in names
    (`DynamicListenerConfig`)."""
    if not changed:
        return
    parse_listeners(parse_properties(then), then)
    old, new = (
        parse_properties(properties)["listener.security.protocol.map"] for properties in (now, then)
    )
    before, after = security_protocols(old), security_protocols(new)
    for listener in parse_listeners(parse_properties(now), now)[0]:
        if listener.name in after and before[listener.name] != after[listener.name]:
            name = f"ListenerName({listener.name})"
            raise unchangeable(f"Security protocol cannot be updated for existing listener {name}")
    _refuse(list(changed), "This broker changes its listeners only at a restart, by its file: Set")


def check_step(now: LiveProperties, then: LiveProperties) -> None:
    """Reject changes that are too large for one step."""
    for name in _THREADS:
        old, new = now.value(name), then.value(name)
        prefix = f"Dynamic thread count update validation failed for {name}={new}, value should"
        if new != old and new <= 0:
            raise unchangeable(f"{prefix} be at least 1")
        _check_count(
            old,
            new,
            f"{prefix} be at least half the current value {old}",
            f"{prefix} not be greater than double the current value {old}",
        )
    old, new = now.value("log.cleaner.threads"), then.value("log.cleaner.threads")
    prefix = "Log cleaner threads cannot be"
    _check_count(
        old,
        new,
        f"{prefix} reduced to less than half the current value {old}",
        f"{prefix} increased to more than double the current value {old}",
    )
    for name in _LIMITS:
        if then.value(name) <= 0:
            raise unchangeable(f"Invalid {name} {then.value(name)}")
    _check_local_retention(then)
    if set(then.value("metric.reporters")) - {JMX}:
        raise unchangeable(
            "Validation of dynamic config update of Set(metric.reporters) failed with class class "
            "kafka.server.DynamicMetricsReporters"
        )


def _check_count(old: int, new: int, too_few: str, too_many: str) -> None:
    if new < old // 2:
        raise unchangeable(too_few)
    if new > old * 2:
        raise unchangeable(too_many)


def _check_local_retention(properties: LiveProperties) -> None:
    """Check the settings of tiered storage, which is off (`DynamicLogConfig`)."""
    value = properties.value
    for unit, whole in (("ms", retention_ms(value)), ("bytes", value("log.retention.bytes"))):
        local = value(f"log.local.retention.{unit}")
        name, of = f"log.local.retention.{unit}", f"log.retention.{unit}"
        why = None
        if whole > -1 and local == -1:
            why = f"Value must not be -1 as {of} value is set as {whole}."
        elif whole > -1 and local != -2 and local > whole:
            why = f"Value must not be more than {of} property value: {whole}"
        if why is not None:
            raise unchangeable(f"Invalid value {local} for configuration {name}: {why}")


def unchangeable(why: str) -> ConfigError:
    """The error for a change that requires a restart, in Apache Kafka's words."""
    return ConfigError(
        f"Invalid value org.apache.kafka.common.config.ConfigException: {why} "
        "for configuration Invalid dynamic configuration"
    )
