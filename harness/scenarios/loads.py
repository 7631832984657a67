"""Large loads, and loads of all client kinds at once."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

COMPACTED = TopicSpec(
    name="urteil-compacted",
    config={
        "min.insync.replicas": "2",
        "cleanup.policy": "compact",
        "segment.ms": "3000",
        "min.cleanable.dirty.ratio": "0.01",
    },
)

BULK = Scenario(
    name="bulk",
    engine="spark",
    about="100,000 records (--records) at full speed, without faults",
    cluster=cluster(),
    workload=WorkloadSpec(kind="bulk", topics=(DURABLE,), options={"records": "100000"}),
    guarantees=(*REPLICATION, "duplicate"),
    duration_s=5.0,
    final_read_deadline_s=600.0,
)

MIXED = Scenario(
    name="mixed",
    about="plain and compacted topics, readers and a group together; a broker, a member and a "
    "producer die",
    cluster=cluster(log_cleaner_backoff_ms="1000"),
    workload=WorkloadSpec(kind="mixed", topics=(DURABLE, COMPACTED), options={"members": "2"}),
    faults=(
        fault("crash", "leader", 5, 6),
        fault("kill_client", "member", 14, 3),
        fault("kill_client", "producer", 19, 1),
    ),
    guarantees=(
        *REPLICATION,
        "duplicate",
        "two_owners",
        "commit_beyond_processed",
        "segment_not_rolled",
    ),
    duration_s=26.0,
)
