"""What a topic may be configured with: names, kinds, ranges (`LogConfig` of Apache Kafka 3.9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

FOREVER = 2**63 - 1

Check = Callable[[str], str | None]
"""Says what is wrong with a value, None when nothing is."""


class InvalidTopicConfig(ValueError):
    """The message is Apache Kafka's."""


def _number(low: float, high: float, parse: Callable[[str], float] = int) -> Check:
    def check(text: str) -> str | None:
        try:
            value = parse(text)
        except ValueError:
            return "Not a number of type " + ("DOUBLE" if parse is float else "LONG")
        if value < low:
            return f"Value must be at least {low}"
        return f"Value must be no more than {high}" if value > high else None

    return check


def _at_least(low: int, high: int = FOREVER) -> Check:
    return _number(low, high)


def _one_of(*allowed: str) -> Check:
    def check(text: str) -> str | None:
        return None if text in allowed else f"String must be one of: {', '.join(allowed)}"

    return check


def _list_of(*allowed: str) -> Check:
    def check(text: str) -> str | None:
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if parts and set(parts) <= set(allowed):
            return None
        return f"List must contain only: {', '.join(allowed)}"

    return check


def _boolean(text: str) -> str | None:
    if text.lower() in ("true", "false"):
        return None
    return "Expected value to be either true or false"


def _anything(_text: str) -> str | None:
    return None


INT = 2**31 - 1
TOPIC_CONFIGS: Mapping[str, Check] = {
    "cleanup.policy": _list_of("compact", "delete"),
    "compression.gzip.level": _at_least(-1, 9),
    "compression.lz4.level": _at_least(1, 17),
    "compression.type": _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    "compression.zstd.level": _at_least(-131072, 22),
    "delete.retention.ms": _at_least(0),
    "file.delete.delay.ms": _at_least(0),
    "flush.messages": _at_least(1),
    "flush.ms": _at_least(0),
    "follower.replication.throttled.replicas": _anything,
    "index.interval.bytes": _at_least(0, INT),
    "leader.replication.throttled.replicas": _anything,
    "local.retention.bytes": _at_least(-2),
    "local.retention.ms": _at_least(-2),
    "max.compaction.lag.ms": _at_least(1),
    "max.message.bytes": _at_least(0, INT),
    "message.downconversion.enable": _boolean,
    "message.format.version": _anything,
    "message.timestamp.after.max.ms": _at_least(0),
    "message.timestamp.before.max.ms": _at_least(0),
    "message.timestamp.difference.max.ms": _at_least(0),
    "message.timestamp.type": _one_of("CreateTime", "LogAppendTime"),
    "min.cleanable.dirty.ratio": _number(0, 1, float),
    "min.compaction.lag.ms": _at_least(0),
    "min.insync.replicas": _at_least(1, INT),
    "preallocate": _boolean,
    "remote.log.copy.disable": _boolean,
    "remote.log.delete.on.disable": _boolean,
    "remote.storage.enable": _boolean,
    "retention.bytes": _number(-(2**63), FOREVER),
    "retention.ms": _at_least(-1),
    "segment.bytes": _at_least(14, INT),
    "segment.index.bytes": _at_least(4, INT),
    "segment.jitter.ms": _at_least(0),
    "segment.ms": _at_least(1),
    "unclean.leader.election.enable": _boolean,
}


def validate_topic_configs(configs: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """The settings as a mapping. Raises InvalidTopicConfig for the first that may not be."""
    configs = list(configs)
    nulls = [name for name, value in configs if value is None]
    if nulls:
        raise InvalidTopicConfig(f"Null value not supported for topic configs: {','.join(nulls)}")
    valid = {}
    for name, value in configs:
        assert value is not None
        check = TOPIC_CONFIGS.get(name)
        if check is None:
            raise InvalidTopicConfig(f"Unknown topic config name: {name}")
        wrong = check(value.strip())
        if wrong is not None:
            raise InvalidTopicConfig(f"Invalid value {value} for configuration {name}: {wrong}")
        valid[name] = value
    return valid
