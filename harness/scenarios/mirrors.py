"""Two clusters in one run, and the mirroring of topics between them."""

from __future__ import annotations

from urteil.harness.scenario import ClusterSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

PAIR = ClusterSpec(brokers=2)
"""The second cluster: two brokers are the fewest of which one may fail, and a run of two clusters
shares the processors of one machine."""

TWO_CLUSTERS = Scenario(
    name="two-clusters",
    about="two clusters side by side: each loses a leader, the links between them are cut",
    suites=("network",),
    cluster=cluster(),
    second=PAIR,
    workload=WorkloadSpec(
        topics=(DURABLE, TopicSpec(name="urteil-west", replication_factor=2, cluster="west")),
        consumers=2,
    ),
    faults=(
        fault("crash", "leader", 4, 6),
        fault("partition", "wan", 12, 3),
        fault("crash", "west:leader", 17, 6, topic="urteil-west"),
    ),
    guarantees=(*REPLICATION, "duplicate"),
)

FAMILY = (TWO_CLUSTERS,)
