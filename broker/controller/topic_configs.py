"""Validation of topic settings (`LogConfig.validate` of Apache Kafka 3.9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from urteil.broker.config.values import ConfigError, topic_keys
from urteil.broker.log.log_config import LogConfig


class InvalidTopicConfig(ValueError):
    """An invalid setting, with Apache Kafka's message.

    For ConfigError, unlike for this one, Apache Kafka's message names the topic.
    """


def validate_topic_configs(
    configs: Iterable[tuple[str, str | None]], broker_properties: Mapping[str, str]
) -> dict[str, str]:
    """The settings as a mapping. Raises InvalidTopicConfig or ConfigError for the first setting
    that is invalid, alone or together with the others and the broker's."""
    settings = without_nulls(configs)
    for name in settings:
        if name not in topic_keys():
            raise InvalidTopicConfig(f"Unknown topic config name: {name}")
    for name, value in settings.items():
        topic_keys()[name][0].parse(value)
    _validate_together(settings, broker_properties)
    return settings


def without_nulls(configs: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """The settings as a mapping. Raises InvalidTopicConfig for a setting without a value."""
    configs = list(configs)
    nulls = [name for name, value in configs if value is None]
    if nulls:
        raise InvalidTopicConfig(f"Null value not supported for topic configs: {','.join(nulls)}")
    return {name: value for name, value in configs if value is not None}


def _validate_together(settings: Mapping[str, str], broker_properties: Mapping[str, str]) -> None:
    config = LogConfig.from_properties(broker_properties, settings)
    low, high = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if low > high:
        raise InvalidTopicConfig(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > "
            f"max.compaction.lag.ms ({high})"
        )
    if _is_true(settings, "remote.log.delete.on.disable", "remote.log.copy.disable"):
        raise InvalidTopicConfig(
            "It is invalid to set `remote.log.delete.on.disable` or `remote.log.copy.disable` "
            "under Zookeeper's mode."
        )
    if _is_true(settings, "remote.storage.enable"):
        raise ConfigError(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )


def _is_true(settings: Mapping[str, str], *names: str) -> bool:
    return any(settings.get(name, "").strip().lower() == "true" for name in names)
