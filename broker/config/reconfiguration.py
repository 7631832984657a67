"""What may be set for a running broker (`DynamicBrokerConfig.validateConfigs` and the parts that
are reconfigured, of Apache Kafka 3.9). Complaints are ConfigError with Apache Kafka's words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from urteil.broker.config.cross_checks import check_rules, retention_ms
from urteil.broker.config.java_classes import JMX
from urteil.broker.config.listeners import parse_listeners, security_protocols
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.config.mutable_keys import DYNAMIC, PER_BROKER, SECURITY
from urteil.broker.config.values import (
    ConfigError,
    ConfigKey,
    known_keys,
    rate_keys,
    typed,
)

_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)")
_OF_THE_CLUSTER = ("max.connections", "max.connection.creation.rate", "num.network.threads")
"""Settings of a listener that may stand for all brokers."""

_THREADS = (
    "background.threads", "num.io.threads", "num.network.threads",
    "num.recovery.threads.per.data.dir", "num.replica.fetchers",
)  # fmt: skip
_LIMITS = ("max.connections", "max.connection.creation.rate")
LISTENERS = frozenset(("advertised.listeners", "listener.security.protocol.map", "listeners"))
"""Apache Kafka opens and closes listeners while it runs; ours does not."""


def is_password(name: str) -> bool:
    """Whether its value is a secret (`DynamicBrokerConfig.isPasswordConfig`)."""
    return name.endswith(_PASSWORDS)


_PASSWORDS = tuple(
    sorted(name for name, key in known_keys().items() if key.type == "password" and name in DYNAMIC)
)


def base_name(name: str) -> str:
    """Without the prefix of a listener."""
    match = _LISTENER.fullmatch(name)
    return match.group(1) if match else name


def key_of(name: str) -> ConfigKey | None:
    """What is known of a broker's property that may be set while it runs."""
    if name in rate_keys():
        return rate_keys()[name]
    return known_keys().get(name) if name in DYNAMIC else None


def check_names(configs: Iterable[str], *, per_broker: bool) -> None:
    """Raises ConfigError for names that may not be set so; unknown ones may (of a plugin)."""
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
    """Whether it makes sense for a single broker alone."""
    of_a_listener = _LISTENER.fullmatch(name)
    if of_a_listener:
        return of_a_listener.group(1) not in _OF_THE_CLUSTER
    return name in PER_BROKER


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise ConfigError(f"{why}({', '.join(names)})")


def check_value(name: str, value: str) -> None:
    """Raises ConfigError for a value of the wrong type or range; of classes there are only ours."""
    key = key_of(base_name(name))
    if key is None:
        return
    key.parse(value)
    if key.type == "class" and value != key.default:
        raise key.refuse(value, f"Class {value} could not be found.")


def validate(properties: LiveProperties, configs: Mapping[str, str], *, per_broker: bool) -> None:
    """Whether `configs` may become all that is set for this broker, or for all of them."""
    check_names(configs, per_broker=True)
    for name, value in configs.items():
        check_value(name, value)
    check_names(configs, per_broker=per_broker)
    if per_broker:
        merged = properties.merged(own=configs)
    else:
        merged = properties.merged(cluster_wide=configs)
    if known_keys()["log.cleaner.threads"].parse(merged.get("log.cleaner.threads")) == 0:
        raise ConfigError("/ by zero")  # Apache Kafka's whole answer
    check_rules(merged)
    _check_listeners(properties, merged, [name for name in configs if name in LISTENERS])
    check_step(properties, LiveProperties(merged))


def _check_listeners(now: LiveProperties, then: Mapping[str, str], changed: Sequence[str]) -> None:
    """What is wrong with the values is said first (`DynamicListenerConfig`)."""
    if not changed:
        return
    parse_listeners(typed(then), then)
    old, new = (typed(one)["listener.security.protocol.map"] for one in (now, then))
    before, after = security_protocols(old), security_protocols(new)
    for one in parse_listeners(typed(now), now)[0]:
        if one.name in after and before[one.name] != after[one.name]:
            name = f"ListenerName({one.name})"
            raise not_now(f"Security protocol cannot be updated for existing listener {name}")
    _refuse(list(changed), "This broker changes its listeners only at a restart, by its file: Set")


def check_step(now: LiveProperties, then: LiveProperties) -> None:
    """What may not change so much at once."""
    for name in _THREADS:
        old, new = now.value(name), then.value(name)
        said = f"Dynamic thread count update validation failed for {name}={new}, value should"
        if new != old and new <= 0:
            raise not_now(f"{said} be at least 1")
        _check_count(
            old,
            new,
            f"{said} be at least half the current value {old}",
            f"{said} not be greater than double the current value {old}",
        )
    old, new = now.value("log.cleaner.threads"), then.value("log.cleaner.threads")
    said = "Log cleaner threads cannot be"
    _check_count(
        old,
        new,
        f"{said} reduced to less than half the current value {old}",
        f"{said} increased to more than double the current value {old}",
    )
    for name in _LIMITS:
        if then.value(name) <= 0:
            raise not_now(f"Invalid {name} {then.value(name)}")
    _check_local_retention(then)
    if set(then.value("metric.reporters")) - {JMX}:
        raise not_now(
            "Validation of dynamic config update of Set(metric.reporters) failed with class class "
            "kafka.server.DynamicMetricsReporters"
        )


def _check_count(old: int, new: int, too_few: str, too_many: str) -> None:
    if new < old // 2:
        raise not_now(too_few)
    if new > old * 2:
        raise not_now(too_many)


def _check_local_retention(properties: LiveProperties) -> None:
    """Of tiered storage, which is off, but checked all the same (`DynamicLogConfig`)."""
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
            raise not_now(f"Invalid value {local} for configuration {name}: {why}")


def not_now(why: str) -> ConfigError:
    """A change that cannot be made while the broker runs, in Apache Kafka's words."""
    return ConfigError(
        f"Invalid value org.apache.kafka.common.config.ConfigException: {why} "
        "for configuration Invalid dynamic configuration"
    )
