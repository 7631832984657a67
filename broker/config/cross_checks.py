"""Checks across properties, in Apache Kafka's order and words.

Source: `KafkaConfig.validateValues` of 3.9.1 and the constructors that run before it. Each
violation raises ConfigError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from urteil.broker.config import metadata_versions
from urteil.broker.config.listener_overrides import ListenerSettings
from urteil.broker.config.listeners import Listener, csv_list, csv_map
from urteil.broker.config.values import (
    ConfigError,
    java_trim,
    known_keys,
    parse_int,
    violated_rule,
)

Value = Callable[[str], Any]
"""A property's typed value by name."""

MIB = 1024 * 1024
_HOST = re.compile(r"[0-9a-zA-Z\-%._:]*")
_PER_IP = "max.connections.per.ip"


def check_properties(properties: Mapping[str, str]) -> None:
    """Check a set of properties, each valid by itself, against each other. Raises ConfigError."""
    keys = known_keys()

    def value(name: str) -> Any:
        return keys[name].parse(properties.get(name, keys[name].default))

    _check_groups(value)
    _check_share_groups(value)
    overrides = _parse_ip_overrides(value)
    _check_protocols_of_groups(value)
    _check_logs(value)
    _check_fetching(value)
    _check_formats(value)
    _check_sockets(value, overrides)


def check_topic_defaults(value: Value) -> None:
    """Check the topic defaults that follow from broker settings, at the start only. Raises
    ConfigError."""
    flush_ms = first_of(value, "log.flush.interval.ms", "log.flush.scheduler.interval.ms")
    if flush_ms < 0:
        raise ConfigError(
            f"Invalid value {flush_ms} for configuration flush.ms: Value must be at least 0 "
            "(log.flush.interval.ms, log.flush.scheduler.interval.ms)"
        )


def check_sasl(properties: Mapping[str, str], listener: Listener) -> None:
    """Check the SASL settings of the inter-broker listener. Raises ConfigError."""
    if not listener.protocol.startswith("SASL"):
        return
    settings = ListenerSettings(properties, listener.name)
    keys = known_keys()
    spoken, mechanism = (
        keys[name].parse(properties.get(name, keys[name].default))
        for name in ("inter.broker.protocol.version", "sasl.mechanism.inter.broker.protocol")
    )
    _require(
        mechanism == "GSSAPI" or metadata_versions.at_least(str(spoken), "0.10.0-IV1"),
        "Only GSSAPI mechanism is supported for inter-broker communication with SASL when "
        f"inter.broker.protocol.version is set to {spoken}",
    )
    _require(
        mechanism in settings.value("sasl.enabled.mechanisms"),
        "sasl.mechanism.inter.broker.protocol must be included in sasl.enabled.mechanisms when "
        f"SASL is used for inter-broker communication (listener {listener.name}: {mechanism})",
    )


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise violated_rule(what)


def _in_order(value: Value, low: str, high: str, *, message_names_low_first: bool) -> None:
    if value(low) > value(high):
        said = (
            f"{low} must be less than or equals to {high}"
            if message_names_low_first
            else f"{high} must be greater than or equals to {low}"
        )
        raise ConfigError(said)


def _check_groups(value: Value) -> None:
    acks = value("offsets.commit.required.acks")
    if not -1 <= acks <= value("offsets.topic.replication.factor"):
        raise ConfigError(
            "offsets.commit.required.acks must be greater or equal to -1 and less or equal to "
            "offsets.topic.replication.factor"
        )
    codec = value("offsets.topic.compression.codec")
    if not 0 <= codec <= 4:
        raise ConfigError(
            f"Invalid value {codec} for configuration offsets.topic.compression.codec: Unknown "
            f"compression type id: {codec}"
        )
    for kind in ("consumer", "share"):
        for what in ("heartbeat.interval", "session.timeout"):
            low, high, usual = (f"group.{kind}.{which}{what}.ms" for which in ("min.", "max.", ""))
            _in_order(value, low, high, message_names_low_first=False)
            _in_order(value, low, usual, message_names_low_first=False)
            _in_order(value, usual, high, message_names_low_first=True)


def _check_share_groups(value: Value) -> None:
    low, usual, high = (
        f"group.share.{which}record.lock.duration.ms" for which in ("min.", "", "max.")
    )
    _in_order(value, low, usual, message_names_low_first=False)
    _in_order(value, usual, high, message_names_low_first=False)


def _check_protocols_of_groups(value: Value) -> None:
    protocols = value("group.coordinator.rebalance.protocols")
    if "classic" not in protocols:
        raise ConfigError(
            "Disabling the 'classic' protocol is not supported. "
            "(group.coordinator.rebalance.protocols)"
        )
    if "consumer" in protocols:
        raise ConfigError(
            "The new 'consumer' rebalance protocol is only supported in KRaft cluster. "
            "(group.coordinator.rebalance.protocols)"
        )


def _parse_ip_overrides(value: Value) -> Mapping[str, str]:
    name = f"{_PER_IP}.overrides"
    result = csv_map(name, value(name) or "")
    for host, count in result.items():
        if parse_int(count) is None:
            raise ConfigError(
                f'For input string: "{count}" ({name}: {count} of {host}:{count} is not an INT)'
            )
    return result


def check_ids(value: Value) -> None:
    """Check `broker.id` and `node.id` of a file. Raises ConfigError."""
    broker_id = value("broker.id")
    if value("node.id") != broker_id:
        raise ConfigError(
            "You must set `node.id` to the same value as `broker.id`. (They are "
            f"{value('node.id')} and {broker_id})"
        )
    if not value("broker.id.generation.enable"):
        _require(broker_id >= 0, "broker.id must be greater than or equal to 0")
    highest = value("reserved.broker.max.id")
    _require(
        not value("broker.id.generation.enable") or -1 <= broker_id <= highest,
        "broker.id must be greater than or equal to -1 and not greater than "
        f"reserved.broker.max.id (it is {broker_id}, and ids from {highest + 1} on are generated: "
        "raise reserved.broker.max.id or set broker.id.generation.enable=false)",
    )


def first_of(value: Value, *names: str) -> Any:
    """Return the first value that is set; the last name has a default."""
    return next(result for name in names if (result := value(name)) is not None)


def retention_ms(value: Value) -> int:
    """Return the retention time by `log.retention.ms`, `.minutes` and `.hours`; -1 without a
    limit."""
    minutes = value("log.retention.minutes")
    hours = value("log.retention.hours")
    coarse = hours * 3_600_000 if minutes is None else minutes * 60_000
    result = value("log.retention.ms")
    return max(int(coarse if result is None else result), -1)


def _check_logs(value: Value) -> None:
    roll_ms, jitter_ms = (value(f"log.roll.{which}ms") for which in ("", "jitter."))
    _require(roll_ms is None or roll_ms >= 1, "log.roll.ms must be greater than or equal to 1")
    _require(
        jitter_ms is None or jitter_ms >= 0, "log.roll.jitter.ms must be greater than or equal to 0"
    )
    _require(
        retention_ms(value) != 0,
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    )
    _require(
        bool(csv_list(first_of(value, "log.dirs", "log.dir"))),
        "At least one log directory must be defined via log.dirs or log.dir.",
    )
    threads = value("log.cleaner.threads")
    if threads == 0:
        raise ConfigError("/ by zero (log.cleaner.threads=0: set 1 or more)")
    _require(
        value("log.cleaner.dedupe.buffer.size") // threads > MIB,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )


def _check_fetching(value: Value) -> None:
    wait_ms = value("replica.fetch.wait.max.ms")
    _require(
        wait_ms <= value("replica.socket.timeout.ms"),
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent "
        "unnecessary socket timeouts",
    )
    _require(
        wait_ms <= value("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms "
        "to prevent frequent changes in ISR",
    )


def _check_formats(value: Value) -> None:
    spoken, stored = value("inter.broker.protocol.version"), value("log.message.format.version")
    if metadata_versions.at_least(spoken, "3.0-IV1"):
        return  # the format has no effect
    format_spoken = metadata_versions.record_format(spoken)
    _require(
        format_spoken >= metadata_versions.record_format(stored),
        f"log.message.format.version {stored} can only be used when inter.broker.protocol.version "
        f"is set to a version that has its record format, and {spoken} has not",
    )


def _check_sockets(value: Value, overrides: Mapping[str, str]) -> None:
    queued = value("queued.max.request.bytes")
    _require(
        queued <= 0 or queued >= value("socket.request.max.bytes"),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    _require(
        value(_PER_IP) != 0 or bool(overrides),
        f"{_PER_IP} can be set to zero only if {_PER_IP}.overrides property is set.",
    )
    invalid = [host for host in overrides if not _HOST.fullmatch(host)]
    if invalid:
        raise ConfigError(f"{_PER_IP}.overrides contains invalid addresses : {','.join(invalid)}")
    idle_ms = value("connections.max.idle.ms")
    delay_ms = value("connection.failed.authentication.delay.ms")
    _require(
        idle_ms < 0 or delay_ms < idle_ms,
        f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
        f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing "
        "out",
    )


def log_folders(value: Value) -> tuple[str, ...]:
    """Return the folders of `log.dirs`, or of `log.dir` without it. Raises ConfigError."""
    raw = first_of(value, "log.dirs", "log.dir")
    folders = tuple(csv_list(java_trim(raw)))
    if len(set(folders)) != len(folders):
        raise ConfigError(f"Invalid value {raw} for configuration log.dirs: one folder twice")
    return folders
