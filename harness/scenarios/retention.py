"""Logs whose oldest segments are deleted while brokers restart, by age, by size, by hand."""

from __future__ import annotations

import msgspec

from urteil.harness.scenario import Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import REPLICATION, cluster, fault

SHORT = TopicSpec(
    name="short",
    partitions=2,
    config={
        "min.insync.replicas": "2",
        "retention.ms": "12000",
        "segment.bytes": "16384",
        "file.delete.delay.ms": "1000",
    },
)
"""Every segment is deleted twelve seconds after its last record."""

LONG = TopicSpec(
    name="long",
    partitions=1,
    config={"min.insync.replicas": "2", "retention.ms": "600000", "segment.bytes": "16384"},
)
"""Nothing is old enough to be deleted."""

SMALL = TopicSpec(
    name="small",
    partitions=1,
    config={"min.insync.replicas": "2", "retention.ms": "600000", "retention.bytes": "65536"}
    | {"segment.bytes": "16384"},
)
"""Segments are deleted by size alone."""

BOTH = TopicSpec(
    name="both",
    partitions=1,
    config=SHORT.config
    | {"cleanup.policy": "compact,delete", "segment.ms": "3000"}
    | {"min.cleanable.dirty.ratio": "0.01"},
)
"""Compacted, and deleted by age as `short` is; the cleaner does both."""

RETENTION = Scenario(
    name="retention",
    about="four topics whose segments are deleted after 12 s (one of them compacted, too), by "
    "size, or never, through a crash and clean restarts",
    suites=("retention",),
    cluster=cluster(
        log_retention_check_interval_ms="1000",
        log_initial_task_delay_ms="1000",
        log_cleaner_backoff_ms="1000",
    ),
    workload=WorkloadSpec(topics=(LONG, SHORT, SMALL, BOTH), consumers=1, keys=50_000),
    faults=(
        fault("crash", "leader", 5, 5, topic="short"),
        fault("rolling_restart", "all", 14, 0),
    ),
    guarantees=(
        *REPLICATION,
        "retained_too_short",
        "kept_too_long",
        "no_delivery",
        "segment_not_rolled",
        "wrong_log_start",
        "leftover_log",
    ),
    duration_s=38.0,
)
"""With so many keys most have only one value: the cleaner deletes it by age alone."""

INDEXES = Scenario(
    name="indexes",
    about="segments of 16 KB with an index entry for every 256 bytes, a topic of which no broker "
    "has all partitions, and a leader crash",
    suites=("retention",),
    cluster=cluster(),
    workload=WorkloadSpec(
        topics=(
            TopicSpec(
                config={
                    "min.insync.replicas": "2",
                    "segment.bytes": "16384",
                    "index.interval.bytes": "256",
                }
            ),
            TopicSpec(name="pairs", replication_factor=2, config={"min.insync.replicas": "1"}),
        ),
    ),
    faults=(fault("crash", "leader", 5, 8),),
    guarantees=(
        *REPLICATION,
        "index_wrong",
        "time_index_wrong",
        "epoch_lineage",
        "latest_went_back",
        "end_below_ack",
        "disagreement",
        "poll_skip",
        "sequence_gap",
        "unseen",
    ),
    duration_s=22.0,
)

DELETION = Scenario(
    name="deletion",
    about="an administrator deletes the older half of one topic, four times, another topic keeps "
    "its records for 4 s, and a leader dies: exactly the deleted records disappear everywhere",
    suites=("retention",),
    cluster=cluster(log_retention_check_interval_ms="1000", log_initial_task_delay_ms="1000"),
    workload=WorkloadSpec(
        topics=(
            TopicSpec(config={"min.insync.replicas": "2", "segment.bytes": "16384"}),
            msgspec.structs.replace(SHORT, config=SHORT.config | {"retention.ms": "4000"}),
        ),
    ),
    faults=(
        fault("delete_records", "topic", 3, 2),
        fault("crash", "leader", 6, 4),
        fault("delete_records", "topic", 11, 1),
    ),
    guarantees=(
        *REPLICATION,
        "retained_too_short",
        "kept_too_long",
        "undeleted_records",
        "vanished_read",
    ),
    duration_s=18.0,
)

LEFT_BEHIND = Scenario(
    name="left-behind",
    about="a follower is down while an administrator deletes all records that it has, and more: "
    "its log restarts at the log start offset of the leader",
    suites=("retention",),
    cluster=cluster(),
    workload=WorkloadSpec(
        topics=(TopicSpec(config={"min.insync.replicas": "2", "segment.bytes": "16384"}),)
    ),
    faults=(
        fault("crash", "straggler", 4, 10),
        fault("delete_records", "topic", 9, 3, share=0.8),
    ),
    guarantees=(*REPLICATION, "hole", "undeleted_records", "slow_recovery"),
    duration_s=22.0,
)

DELETED_ONCE = Scenario(
    name="deleted-once",
    about="an administrator deletes records while followers are slow, and a leader dies; later "
    "all brokers shut down at once: the response waits for every replica, and deleted records "
    "stay deleted",
    suites=("retention",),
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=WorkloadSpec(
        topics=(TopicSpec(config={"min.insync.replicas": "2", "segment.bytes": "16384"}),),
        delivery_timeout_ms=60_000,
    ),
    faults=(
        fault("latency", "followers->leader", 5, 6, latency_ms=900),
        fault("delete_records", "topic", 6.2, 1, once=True),
        fault("crash", "leader", 6.3, 5),
        fault("shutdown", "all", 19, 2),
    ),
    guarantees=(*REPLICATION, "duplicate", "undeleted_records"),
    duration_s=28.0,
)
"""DeleteRecords is answered after every live replica has it, since any of them may lead next."""
