"""Broker settings in effect that users of tools often need to know."""

from __future__ import annotations

from contextlib import closing

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from urteil.harness.cluster import Cluster

SHOWN = (
    "default.replication.factor",
    "min.insync.replicas",
    "num.partitions",
    "auto.create.topics.enable",
    "delete.topic.enable",
    "unclean.leader.election.enable",
    "log.retention.hours",
    "log.retention.bytes",
    "message.max.bytes",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "group.initial.rebalance.delay.ms",
    "group.min.session.timeout.ms",
    "zookeeper.session.timeout.ms",
    "auto.leader.rebalance.enable",
)
ANSWER_MS = 15_000


def broker_defaults(cluster: Cluster) -> dict[str, str]:
    """The effective settings of the first broker.

    DescribeConfigs returns them; a broker before it (0.11) has those of its property file. Settings
    by name come last.
    """
    first = next(iter(cluster.nodes.values()))
    names = [*SHOWN, *(name for name in cluster.spec.config if name not in SHOWN)]
    written = cluster.properties(first)
    try:
        described = _describe_broker(cluster.bootstrap, first.broker_id)
    except KafkaError:
        described = dict[str, str | None]()
    values = {name: described.get(name, written.get(name)) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _describe_broker(bootstrap: list[str], broker_id: int) -> dict[str, str | None]:
    with closing(
        KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=ANSWER_MS)
    ) as admin:
        resource = ConfigResource(ConfigResourceType.BROKER, str(broker_id))
        answer = admin.describe_configs([resource], config_filter="all")
    settings = next(iter(answer.values()))[str(broker_id)]
    return {name: setting["value"] for name, setting in settings.items()}
