"""Validators of values, beyond their types (Apache Kafka's `ConfigDef.Validator`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from urteil.broker.config import metadata_versions

Complaint = tuple[Any, str]
"""The value as Apache Kafka prints it, and the reason for its rejection."""

Check = Callable[[Any], Complaint | None]
"""Checks a typed value; returns None for a valid one."""

_REPLICAS = re.compile(r"\*|([0-9]+:[0-9]+)?(,([0-9]+:[0-9]+)?)*")


def in_range(text: str) -> Check:
    """Check a range `lowest..highest`; either bound may be missing."""
    low, high = (_number(part) if part else None for part in text.split(".."))

    def check(value: Any) -> Complaint | None:
        if low is not None and value < low:
            return value, f"Value must be at least {low}"
        if high is not None and value > high:
            return value, f"Value must be no more than {high}"
        return None

    return check


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


def one_of(*allowed: str) -> Check:
    def check(value: Any) -> Complaint | None:
        return None if value in allowed else (value, f"String must be one of: {', '.join(allowed)}")

    return check


def each_of(*allowed: str) -> Check:
    """Check each element of a list, which may be empty."""
    single = one_of(*allowed)

    def check(values: Any) -> Complaint | None:
        return next(filter(None, map(single, values)), None)

    return check


def gzip_level(value: Any) -> Complaint | None:
    if value == -1 or 1 <= value <= 9:
        return None
    return value, "Value must be between 1 and 9 or equal to -1"


def throttled_replicas(name: str) -> Check:
    """Check `*`, or partitions with brokers (`ThrottledReplicaListValidator`)."""

    def check(values: Any) -> Complaint | None:
        if _REPLICAS.fullmatch(",".join(values)):
            return None
        return (
            f"[{', '.join(values)}]",
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        )

    return check


def version(value: Any) -> Complaint | None:
    """Check a version of the inter-broker protocol."""
    known = metadata_versions.rank(value) is not None
    return None if known else (value, f"Version {value} is not a valid version")


def not_empty(value: Any) -> Complaint | None:
    return None if value else (value, "String must be non-empty")


def threads(value: Any) -> Complaint | None:
    """Check a number of threads; -1 defers to another setting."""
    return None if value == -1 or value >= 1 else (value, "Value can be -1 or greater than 0")


def any_case_of(*allowed: str) -> Check:
    def check(value: Any) -> Complaint | None:
        if value.upper() in allowed:
            return None
        return value, f"String must be one of (case insensitive): {', '.join(allowed)}"

    return check


_ADDRESS = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")


def voters(values: Any) -> Complaint | None:
    """Check voters of a KRaft quorum, which this broker ignores
    (`QuorumConfig.parseVoterConnections`)."""
    for entry in values:
        number, at, address = entry.partition("@")
        if not at or "@" in address or not _INTEGER.fullmatch(number) or not _is_address(address):
            return entry, "Each entry should be in the form `{id}@{host}:{port}`."
    return None


def addresses(values: Any) -> Complaint | None:
    for entry in values:
        if not _is_address(entry):
            return entry, "Each entry should be in the form `{host}:{port}`."
    return None


_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")


def _is_address(text: str) -> bool:
    match = _ADDRESS.fullmatch(text)
    return match is not None and int(match.group(2)) <= 65_535


_POLICY = each_of("compact", "delete")
_COMPRESSION = one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_TIME = one_of("CreateTime", "LogAppendTime")
_LEVELS: Mapping[str, Check] = {
    "compression.gzip.level": gzip_level,
    "compression.type": _COMPRESSION,
}

BROKER_CHECKS: Mapping[str, Check] = {
    **_LEVELS,
    "controller.quorum.bootstrap.servers": addresses,
    "controller.quorum.voters": voters,
    "group.consumer.migration.policy": any_case_of(
        "DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"
    ),
    "group.coordinator.rebalance.protocols": each_of("consumer", "classic", "share", "unknown"),
    "inter.broker.protocol.version": version,
    "log.cleanup.policy": _POLICY,
    "log.message.format.version": version,
    "log.message.timestamp.type": _TIME,
    "process.roles": each_of("broker", "controller"),
    "remote.log.manager.copier.thread.pool.size": threads,
    "remote.log.manager.expiration.thread.pool.size": threads,
    "remote.log.metadata.manager.class.name": not_empty,
    "remote.log.metadata.manager.impl.prefix": not_empty,
    "remote.log.metadata.manager.listener.name": not_empty,
    "remote.log.storage.manager.class.name": not_empty,
    "remote.log.storage.manager.impl.prefix": not_empty,
    "security.inter.broker.protocol": one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    "ssl.client.auth": one_of("required", "requested", "none"),
}
"""Checks of broker properties, besides the ranges of the table."""

TOPIC_CHECKS: Mapping[str, Check] = {
    **_LEVELS,
    **{
        f"{role}.replication.throttled.replicas": throttled_replicas(
            f"{role}.replication.throttled.replicas"
        )
        for role in ("follower", "leader")
    },
    "cleanup.policy": _POLICY,
    "message.format.version": version,
    "message.timestamp.type": _TIME,
}
"""Checks of topic settings, besides the ranges of the table."""
