"""What values a setting may have, beyond its type: the validators of Apache Kafka's `ConfigDef`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Complaint = tuple[Any, str]
"""The value as Apache Kafka shows it, and what is wrong with it."""

Check = Callable[[Any], Complaint | None]
"""Takes a typed value; None when nothing is wrong with it."""

_VERSION = re.compile(r"(0\.(8\.[012]|9\.0|10\.[012]|11\.0)|1\.[01]|2\.[0-8]|3\.[0-9])(-IV\d)?")
_REPLICAS = re.compile(r"\*|([0-9]+:[0-9]+)?(,([0-9]+:[0-9]+)?)*")


def at_least(low: float) -> Check:
    def check(value: Any) -> Complaint | None:
        return (value, f"Value must be at least {low}") if value < low else None

    return check


def between(low: float, high: float) -> Check:
    def check(value: Any) -> Complaint | None:
        if value > high:
            return value, f"Value must be no more than {high}"
        return at_least(low)(value)

    return check


def one_of(*allowed: str) -> Check:
    def check(value: Any) -> Complaint | None:
        return None if value in allowed else (value, f"String must be one of: {', '.join(allowed)}")

    return check


def each_of(*allowed: str) -> Check:
    """Of a list, which may be empty."""
    single = one_of(*allowed)

    def check(values: Any) -> Complaint | None:
        return next(filter(None, map(single, values)), None)

    return check


def gzip_level(value: Any) -> Complaint | None:
    if value == -1 or 1 <= value <= 9:
        return None
    return value, "Value must be between 1 and 9 or equal to -1"


def throttled_replicas(name: str) -> Check:
    """`*`, or partitions with brokers (`ThrottledReplicaListValidator`)."""

    def check(values: Any) -> Complaint | None:
        if _REPLICAS.fullmatch(",".join(values)):
            return None
        return (
            f"[{', '.join(values)}]",
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        )

    return check


def format_version(value: Any) -> Complaint | None:
    known = _VERSION.match(value) is not None
    return None if known else (value, f"Version {value} is not a valid version")


_POLICY = each_of("compact", "delete")
_COMPRESSION = one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_TIME = one_of("CreateTime", "LogAppendTime")
_LEVELS: Mapping[str, Check] = {
    "compression.gzip.level": gzip_level,
    "compression.lz4.level": between(1, 17),
    "compression.type": _COMPRESSION,
    "compression.zstd.level": between(-131072, 22),
}

BROKER_CHECKS: Mapping[str, Check] = {
    **_LEVELS,
    "log.cleaner.min.cleanable.ratio": between(0, 1),
    "log.cleanup.policy": _POLICY,
    "log.message.timestamp.type": _TIME,
    "ssl.client.auth": one_of("required", "requested", "none"),
}
"""Beside the minimum in the table of broker properties."""

TOPIC_CHECKS: Mapping[str, Check] = {
    **_LEVELS,
    **{
        f"{role}.replication.throttled.replicas": throttled_replicas(
            f"{role}.replication.throttled.replicas"
        )
        for role in ("follower", "leader")
    },
    "cleanup.policy": _POLICY,
    "message.format.version": format_version,
    "message.timestamp.type": _TIME,
    "min.cleanable.dirty.ratio": between(0, 1),
}
"""Beside the minimum in the table of topic settings."""
