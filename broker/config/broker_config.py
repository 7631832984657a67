"""The property file as the broker uses it: typed values with Kafka 3.9's defaults."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from urteil.broker.config.cross_checks import (
    check_ids,
    check_properties,
    check_sasl,
    check_topic_defaults,
    log_folders,
)
from urteil.broker.config.java_classes import check_classes, check_features
from urteil.broker.config.listeners import Listener, parse_listeners, parse_metrics_listener
from urteil.broker.config.live_properties import LiveProperties
from urteil.broker.config.providers import PREFIX as PROVIDERS
from urteil.broker.config.providers import resolve
from urteil.broker.config.values import ConfigError, java_trim, known_keys, parse_properties

log = logging.getLogger("config")

AUTHORIZER_NAMES = ("super.users", "allow.everyone.if.no.acl.found")
"""Settings of the authorizer. Apache Kafka passes them on unchecked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """A typed view of the file. A field is the property with underscores instead of dots.

    `properties` are the effective raw values: settings that may change while the broker runs are
    read there (`config.properties.value(name)`), the fields keep the values of the file.
    `LogConfig` reads the defaults of topics (`log.*`, `min.insync.replicas` ...) from `properties`.
    """

    properties: LiveProperties
    listeners: tuple[Listener, ...]
    inter_broker_listener: str
    log_dirs: tuple[str, ...]
    metrics_listener: tuple[str, int] | None

    authorizer_class_name: str
    auto_create_topics_enable: bool
    broker_id: int
    broker_rack: str | None
    connections_max_idle_ms: int
    controlled_shutdown_enable: bool
    controlled_shutdown_max_retries: int
    controlled_shutdown_retry_backoff_ms: int
    controller_socket_timeout_ms: int
    default_replication_factor: int
    delete_topic_enable: bool
    fetch_max_bytes: int
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_min_session_timeout_ms: int
    leader_imbalance_check_interval_seconds: int
    leader_imbalance_per_broker_percentage: int
    auto_leader_rebalance_enable: bool
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_start_offset_checkpoint_interval_ms: int
    log_retention_check_interval_ms: int
    max_incremental_fetch_session_cache_slots: int
    num_io_threads: int
    num_partitions: int
    num_replica_fetchers: int
    queued_max_request_bytes: int
    offset_metadata_max_bytes: int
    offsets_commit_timeout_ms: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offsets_topic_num_partitions: int
    offsets_topic_replication_factor: int
    offsets_topic_segment_bytes: int
    replica_fetch_backoff_ms: int
    replica_fetch_max_bytes: int
    replica_fetch_min_bytes: int
    replica_fetch_response_max_bytes: int
    replica_fetch_wait_max_ms: int
    replica_high_watermark_checkpoint_interval_ms: int
    replica_lag_time_max_ms: int
    replica_selector_class: str | None
    replica_socket_timeout_ms: int
    request_timeout_ms: int
    socket_connection_setup_timeout_ms: int
    socket_listen_backlog_size: int
    socket_request_max_bytes: int
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_max_timeout_ms: int
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transaction_state_log_min_isr: int
    transaction_state_log_num_partitions: int
    transaction_state_log_replication_factor: int
    transaction_state_log_segment_bytes: int
    transactional_id_expiration_ms: int
    urteil_hosts_file: str | None
    zookeeper_connect: str
    zookeeper_connection_timeout_ms: int | None
    zookeeper_session_timeout_ms: int

    @property
    def zookeeper_patience_ms(self) -> int:
        """How long to wait for the first connection to ZooKeeper."""
        return self.zookeeper_connection_timeout_ms or self.zookeeper_session_timeout_ms

    @property
    def inter_broker(self) -> Listener:
        """The listener that other brokers connect to."""
        return next(
            listener for listener in self.listeners if listener.name == self.inter_broker_listener
        )


_COMPUTED = {
    "properties", "listeners", "inter_broker_listener", "log_dirs", "metrics_listener",
}  # fmt: skip


def load_config(properties: Mapping[str, str]) -> BrokerConfig:
    """Resolve variables, check all known properties and build the view. Raises ConfigError.

    Unknown properties cause a warning and are ignored, as in Kafka; they may belong to a plugin.
    """
    resolved = resolve(_with_both_ids(properties))
    live = LiveProperties({name: java_trim(value) for name, value in resolved.items()})
    values = parse_properties(live)
    if values["zookeeper.connect"] is None:
        raise ConfigError(
            "Missing required configuration `zookeeper.connect` which has no default value."
        )
    check_features(values)
    check_ids(live.value)
    check_properties(live)
    check_topic_defaults(live.value)
    listeners, inter_broker = parse_listeners(values, live)
    check_sasl(live, next(listener for listener in listeners if listener.name == inter_broker))
    check_classes(live, [listener.name for listener in listeners])
    _warn_of_unknown(live, listeners)
    if not values["zookeeper.connect"]:
        raise ConfigError(
            "Invalid value  for configuration zookeeper.connect: not HOST:PORT,HOST:PORT"
        )
    view: dict[str, Any] = {
        field.name: values[field.name.replace("_", ".")]
        for field in fields(BrokerConfig)
        if field.name not in _COMPUTED
    }
    return BrokerConfig(
        properties=live,
        listeners=listeners,
        inter_broker_listener=inter_broker,
        log_dirs=log_folders(live.value),
        metrics_listener=parse_metrics_listener(values["urteil.metrics.listener"]),
        **view,
    )


def _with_both_ids(properties: Mapping[str, str]) -> dict[str, str]:
    """Set `node.id` and `broker.id` from each other where only one is present."""
    completed = dict(properties)
    for name, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
        if name not in properties and other in properties:
            completed[name] = properties[other]
    return completed


def _warn_of_unknown(properties: Mapping[str, str], listeners: Iterable[Listener]) -> None:
    listener_prefixes = tuple(f"listener.name.{listener.name.lower()}." for listener in listeners)
    prefixes = (*listener_prefixes, "authorizer.", PROVIDERS)
    for name in sorted(set(properties) - set(known_keys())):
        if not name.startswith(prefixes) and name not in AUTHORIZER_NAMES:
            log.warning("unknown property ignored: %s", name)
