"""The topics of a run, created through the clients' listener as any application would."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence

from kafka.admin import KafkaAdminClient
from kafka.errors import InvalidReplicationFactorError, KafkaError, TopicAlreadyExistsError

from urteil.chaos.waiting import retry
from urteil.harness.scenario import Scenario, TopicSpec, clusters

REQUEST_TIMEOUT_MS = 10_000
DEADLINE_S = 30.0
TopicConfig = Callable[[Mapping[str, str]], dict[str, str]]
RETRY_S = 0.2


def fit_topic(topic: TopicSpec, brokers: int) -> TopicSpec:
    """`topic` with at most as many replicas, and minimum in-sync replicas, as brokers."""
    config = dict(topic.config)
    if "min.insync.replicas" in config:
        config["min.insync.replicas"] = str(min(int(config["min.insync.replicas"]), brokers))
    return TopicSpec(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=min(topic.replication_factor, brokers),
        config=config,
        copies=topic.copies,
        cluster=topic.cluster,
    )


def fit_topics(scenario: Scenario) -> list[TopicSpec]:
    """The topics of a scenario, fitted to its clusters."""
    names = [topic.name for topic in scenario.workload.topics]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"{scenario.name} has two topics named {min(twice)}: names "
                         "distinguish the evidence of both clusters; rename one")  # fmt: skip
    sizes = {name: cluster.brokers for name, cluster in clusters(scenario).items()}
    for topic in scenario.workload.topics:
        if topic.cluster not in sizes:
            raise ValueError(f"topic {topic.name} is in {topic.cluster}, a cluster that "
                             f"{scenario.name} has not: declare `second`")  # fmt: skip
    return [fit_topic(topic, sizes[topic.cluster]) for topic in scenario.workload.topics]


def create_topics(
    bootstrap: Sequence[str], topics: Sequence[TopicSpec], topic_config: TopicConfig = dict
) -> None:
    """Create topics. Returns when every partition has a leader in the metadata.

    `topic_config` translates settings to the names in the brokers' release. A broker that has just
    registered may refuse connections or be unknown to other brokers: transient errors are retried
    until DEADLINE_S, then raised.
    """
    with contextlib.suppress(TopicAlreadyExistsError):
        retry(
            lambda: _create(bootstrap, topics, topic_config),
            KafkaError,
            _is_transient,
            deadline_s=DEADLINE_S,
            poll_s=RETRY_S,
        )


def _is_transient(error: KafkaError) -> bool:
    return bool(error.retriable) or isinstance(error, InvalidReplicationFactorError)


def _create(
    bootstrap: Sequence[str], topics: Sequence[TopicSpec], topic_config: TopicConfig
) -> None:
    admin = KafkaAdminClient(
        bootstrap_servers=list(bootstrap), request_timeout_ms=REQUEST_TIMEOUT_MS
    )
    try:
        admin.create_topics(
            {
                topic.name: {
                    "num_partitions": topic.partitions,
                    "replication_factor": topic.replication_factor,
                    "configs": topic_config(topic.config),
                }
                for topic in topics
            },
            timeout_ms=REQUEST_TIMEOUT_MS,
            wait_for_metadata=True,
        )
    finally:
        admin.close()
