"""Client settings, and the anomalies that they permit."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import DELIVERY, DURABLE, LAX, REPLICATION, cluster, fault

CRASH = fault("crash", "leader", 5, 10)

AT_MOST_ONCE = Scenario(
    name="at-most-once",
    about="acks=0 and a group that commits before it processes, through a leader crash: no record "
    "is invented, and replicas agree",
    suites=("delivery",),
    cluster=cluster(),
    workload=WorkloadSpec(
        kind="group",
        topics=(LAX,),
        consumers=2,
        acks=0,
        idempotent=False,
        options={"commit": "before"},
    ),
    faults=(CRASH,),
    guarantees=("phantom", "replica_divergence"),
)

AT_LEAST_ONCE = Scenario(
    name="at-least-once",
    about="acks=all without idempotence and a group that commits after it processed, through a "
    "leader crash: nothing is lost",
    suites=("delivery",),
    cluster=cluster(),
    workload=WorkloadSpec(
        kind="group",
        topics=(DURABLE,),
        consumers=2,
        idempotent=False,
        options={"commit": "after"},
    ),
    faults=(CRASH,),
    guarantees=("lost_write", "phantom", "replica_divergence"),
)

GROUP = Scenario(
    name="group",
    about="a consumer group through SIGKILL of a leader and of its coordinator",
    suites=("delivery",),
    cluster=cluster(),
    workload=WorkloadSpec(kind="group", topics=(DURABLE,), consumers=3),
    faults=(
        fault("crash", "leader", 5, 8),
        fault("crash", "leader", 21, 6, topic="__consumer_offsets"),
    ),
    guarantees=(*REPLICATION, "duplicate", "two_owners", "commit_beyond_processed"),
    duration_s=32.0,
)

ACKS_ONE = Scenario(
    name="acks-one",
    about="acks=1, and followers cut off from their leader, which dies 1.5 s later: the tail is "
    "lost, as permitted",
    suites=("delivery",),
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=WorkloadSpec(topics=(LAX,), acks=1, idempotent=False),
    faults=(
        fault("partition", "followers->leader", 6, 9),
        fault("crash", "leader", 7.5, 9),
    ),
    guarantees=DELIVERY,
    must_find=("lost_write",),
)

HOUR_MS = "3600000"
LIMITED = TopicSpec(
    config=DURABLE.config
    | {"max.message.bytes": "131072"}
    | {f"message.timestamp.{side}.max.ms": HOUR_MS for side in ("before", "after")}
)
"""Of what is sent to it, only lies go beyond its limits."""

CORRUPT_CLIENT = Scenario(
    name="corrupt-client",
    about="a client sends batches with a wrong CRC, or beyond their topic's limits of size and "
    "time: the broker must reject them",
    suites=("delivery",),
    cluster=cluster(),
    workload=WorkloadSpec(topics=(LIMITED,), options={"corrupt_batches": "28"}),
    faults=(fault("crash", "follower", 6, 4),),
    guarantees=(*REPLICATION, "corrupt"),
    duration_s=18.0,
)

PAIRS = TopicSpec(partitions=6, replication_factor=2, config={"min.insync.replicas": "2"})
"""Each broker leads two partitions, followed by another one each."""

SHARED_REQUESTS = Scenario(
    name="shared-requests",
    about="producers' requests contain records of two partitions with two replicas each, of which "
    "one's follower is cut off; then the leader dies: an answer for one partition is none for the "
    "other",
    suites=("delivery",),
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=WorkloadSpec(
        topics=(PAIRS,), producers=3, delivery_timeout_ms=60_000, options={"linger_ms": "100"}
    ),
    faults=(
        fault("partition", "follower->leader", 5, 10, answers_only=True),
        fault("crash", "leader", 8.5, 6),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader"),
    duration_s=20.0,
)

LARGE_RECORDS = Scenario(
    name="large-records",
    about="each record is larger than a fetch of replicas and readers, and a follower dies and "
    "returns: the first batch is returned complete, whatever its size (KIP-74)",
    suites=("delivery",),
    cluster=cluster(replica_fetch_max_bytes="1024", replica_fetch_response_max_bytes="1024"),
    workload=WorkloadSpec(
        topics=(DURABLE,),
        rate_records_per_s=60,
        value_bytes=3000,
        options={"fetch_bytes": "1024"},
    ),
    faults=(fault("crash", "follower", 5, 6),),
    guarantees=(*REPLICATION, "duplicate", "no_progress", "no_delivery", "slow_recovery"),
    survives=True,
    duration_s=20.0,
)

REWRITTEN = Scenario(
    name="rewritten",
    about="brokers compress plain batches, and stamp those of one topic with their own time; a "
    "leader dies: keys, headers, times and sequences stay",
    suites=("delivery",),
    cluster=cluster(),
    workload=WorkloadSpec(
        topics=(
            TopicSpec(config=DURABLE.config | {"compression.type": "gzip"}),
            TopicSpec(
                name="stamped",
                config=DURABLE.config
                | {"compression.type": "gzip", "message.timestamp.type": "LogAppendTime"},
            ),
        ),
        options={"linger_ms": "100"},
    ),
    faults=(fault("crash", "leader", 5, 5),),
    guarantees=(*REPLICATION, "corrupt", "duplicate", "sequence_gap", "time_index_wrong"),
    duration_s=16.0,
)

OLD_CLIENTS = Scenario(
    name="old-clients",
    about="a producer and a reader use the protocol of 0.10.1, before record batches; a leader "
    "dies: converted records stay the same both ways",
    suites=("delivery",),
    cluster=cluster(),
    workload=WorkloadSpec(
        topics=(
            DURABLE,
            TopicSpec(
                name="packed",
                config=DURABLE.config
                | {"compression.type": "gzip", "message.timestamp.type": "LogAppendTime"},
            ),
        ),
        consumers=2,
        options={"linger_ms": "100", "old_clients": "1"},
    ),
    faults=(fault("crash", "leader", 5, 5),),
    guarantees=(*REPLICATION, "corrupt", "poll_skip", "no_delivery"),
    duration_s=16.0,
)
