"""The settings of a topic that promises depend on: its own, else the brokers', else the lab's."""

from __future__ import annotations

from urteil.chaos.topology import EAST
from urteil.harness.scenario import Scenario, TopicFact, TopicSpec, clusters

LAB_DEFAULTS = {
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "zookeeper.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "2000",
}
"""What the lab gives every broker (harness/targets/target.py) and checks depend on."""


def setting(topic: TopicFact | TopicSpec | None, scenario: Scenario, name: str) -> str:
    """A topic's setting: its own, else the brokers', else the lab's default."""
    own = {} if topic is None else topic.config
    place = EAST if topic is None else topic.cluster
    cluster = clusters(scenario).get(place, scenario.cluster)
    if name == "min.insync.replicas" and cluster.brokers < 3:
        return own.get(name, cluster.config.get(name, "1"))
    return own.get(name, cluster.config.get(name, LAB_DEFAULTS[name]))


def min_isr(topic: TopicFact | TopicSpec, scenario: Scenario) -> int:
    """The number of in-sync replicas that acks=all requires: never more than there are replicas."""
    required = int(setting(topic, scenario, "min.insync.replicas"))
    return min(required, topic.replication_factor)


def cleanup_policy(topic: TopicFact | TopicSpec, scenario: Scenario) -> str:
    """`delete`, `compact` or both."""
    broker_wide = scenario.cluster.config.get("log.cleanup.policy", "delete")
    return topic.config.get("cleanup.policy", broker_wide)
