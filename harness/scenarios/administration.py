"""What administrators do to a cluster at work: topics, replicas, leaders, settings, brokers."""

from __future__ import annotations

from urteil.harness.scenario import ClusterSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

PATIENT = WorkloadSpec(topics=(DURABLE,), delivery_timeout_ms=60_000)
GROUP = WorkloadSpec(kind="group", topics=(DURABLE,), consumers=2)
SAFE = (*REPLICATION, "duplicate", "unclean_leader", "epoch_went_back")
FOUR = ClusterSpec(brokers=4)
"""Replicas have somewhere to go."""

TOPICS = Scenario(
    name="topics",
    about="topics are made and deleted, and the one in use gets more partitions; a leader dies",
    cluster=cluster(),
    workload=GROUP,
    faults=(
        fault("topic_churn", "topic", 4, 8, count=4),
        fault("add_partitions", "topic", 6, 1, by=2),
        fault("crash", "leader", 10, 4),
    ),
    guarantees=SAFE,
    duration_s=20.0,
)

REASSIGN = Scenario(
    name="reassign",
    about="all replicas of the topic move on under load, and a leader dies on the way",
    cluster=FOUR,
    workload=PATIENT,
    faults=(fault("reassign", "topic", 4, 6), fault("crash", "leader", 5, 4)),
    guarantees=SAFE,
    duration_s=20.0,
    recovery_deadline_s=60.0,
)

FAMILY = (
    TOPICS,
    REASSIGN,
)
