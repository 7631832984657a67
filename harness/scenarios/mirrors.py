"""Two clusters in one run, and the mirroring of topics between them."""

from __future__ import annotations

import msgspec

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

SAFE = {"min.insync.replicas": "2"}
MIRROR = TopicSpec(
    name="east.urteil",
    replication_factor=2,
    config={"min.insync.replicas": "1"},
    cluster="west",
    copies=True,
)
AUTHORIZED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
TRANSACTIONAL = AUTHORIZED | {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
"""A killed MirrorMaker leaves transactions open, behind which its next session cannot read."""
MIRRORED = WorkloadSpec(
    kind="application",
    topics=(TopicSpec(config=SAFE), MIRROR),
    consumers=2,
    rate_records_per_s=150,
    options={"application": "mirror", "members": "1"},
)

MIRROR_PASSIVE = Scenario(
    name="mirror-passive",
    about="MirrorMaker copies to a passive cluster; the links between the clusters are slow, cut "
    "and reset, MirrorMaker is killed, each cluster loses a leader",
    suites=("applications",),
    cluster=ClusterSpec(config=AUTHORIZED),
    second=ClusterSpec(brokers=2, config=AUTHORIZED),
    workload=MIRRORED,
    faults=(
        fault("latency", "wan", 3, 4, latency_ms=150),
        fault("pause_client", "member", 4, 12),
        fault("partition", "wan", 9, 4),
        fault("kill_client", "app", 15, 1),
        fault("crash", "leader", 23, 5),
        fault("reset", "wan", 30, 2),
        fault("crash", "west:leader", 34, 5, topic="east.urteil"),
    ),
    guarantees=(
        *REPLICATION,
        "unprocessed",
        "wrong_result",
        "mirror_gap",
        "mirror_order",
        "translated_too_far",
    ),
    duration_s=42.0,
)

WESTERN = TopicSpec(
    name="urteil-west", replication_factor=2, config={"min.insync.replicas": "1"}, cluster="west"
)
MIRROR_BACK = TopicSpec(name="west.urteil-west", config=SAFE, copies=True)

MIRROR_ACTIVE = Scenario(
    name="mirror-active",
    about="MirrorMaker copies both ways between two active clusters, exactly once; the links "
    "between them are cut, MirrorMaker is killed, each cluster loses a leader",
    suites=("applications",),
    cluster=ClusterSpec(config=TRANSACTIONAL),
    second=ClusterSpec(brokers=2, config=TRANSACTIONAL),
    workload=msgspec.structs.replace(
        MIRRORED,
        topics=(TopicSpec(config=SAFE), WESTERN, MIRROR, MIRROR_BACK),
        isolation="read_committed",
        options={
            "application": "mirror",
            "both_ways": "true",
            "exactly_once": "true",
            "promise": "exactly-once",
        },
    ),
    faults=(
        fault("partition", "wan", 4, 4),
        fault("kill_client", "app", 11, 1),
        fault("crash", "leader", 19, 5),
        fault("crash", "west:leader", 27, 5, topic="east.urteil"),
    ),
    guarantees=(*REPLICATION, "unprocessed", "processed_twice", "mirror_order", "mirror_gap"),
    duration_s=36.0,
)
MIRROR_FAILOVER = Scenario(
    name="mirror-failover",
    about="the active cluster dies for good while the links to it are cut: a consumer goes on at "
    "the passive cluster from translated offsets; lost is what was not mirrored",
    suites=("applications",),
    cluster=ClusterSpec(config=AUTHORIZED),
    second=ClusterSpec(brokers=2, config=AUTHORIZED),
    workload=msgspec.structs.replace(
        MIRRORED,
        topics=(TopicSpec(config=SAFE), WESTERN, MIRROR),
        options={
            "application": "mirror",
            "members": "1",
            "successors": "1",
            "promise": "at-most-once",
        },
    ),
    faults=(
        fault("pause_client", "member", 8, 6),
        fault("partition", "wan", 17, 8),
        fault("crash", "all", 20, 18),
        fault("kill_client", "app", 20.5, 1, for_good=True),
        fault("kill_client", "p1", 21, 1, for_good=True),
        fault("kill_client", "member", 21.5, 1, for_good=True),
    ),
    guarantees=(*REPLICATION, "mirror_gap", "mirror_order", "translated_too_far"),
    duration_s=40.0,
)
"""The first cluster starts again after the load, so that its logs show what was not mirrored.
MirrorMaker, the producer and the member of the first cluster do not."""
