"""Schedules that bring about published bugs of Apache Kafka (harness/known_bugs/).

`urteil bugs` plays them; no suite does.
"""

from __future__ import annotations

from msgspec.structs import replace

from urteil.harness.scenario import FaultSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, IMPATIENT, REPLICATION, cluster, fault
from urteil.harness.scenarios.compaction import CLEANING, COMPACTION_CALM, EAGER
from urteil.harness.scenarios.groups import POSITIONS, POSITIONS_TOPIC

LOAD = WorkloadSpec(topics=(DURABLE,))

UNTRIMMED_SEGMENTS = replace(
    COMPACTION_CALM,
    name="preallocated-segments",
    about="segments are preallocated, and cleaned all the time, without faults: the cleaner reads "
    "its own output again (KAFKA-5431)",
    suites=(),
    cluster=replace(CLEANING, config=CLEANING.config | {"log.preallocate": "true"}),
    workload=replace(COMPACTION_CALM.workload, topics=(DURABLE, EAGER)),
)

SMALL_LOADS = Scenario(
    name="offsets-loaded-in-pieces",
    about="clients commit offsets of groups without members; their coordinator dies, and the next "
    "one loads the offsets in pieces of 4 KiB: the last commit counts (KAFKA-5600)",
    cluster=cluster(offsets_load_buffer_size="4096"),
    workload=WorkloadSpec(
        kind="commits",
        topics=(DURABLE, POSITIONS_TOPIC),
        consumers=4,
        rate_records_per_s=100,
    ),
    faults=(fault("crash", "coordinator", 8, 5),),
    guarantees=POSITIONS,
    duration_s=18.0,
)

REFILLED_REPLICA = Scenario(
    name="refilled-replica",
    about="the first records of idempotent producers are deleted, then a follower returns with "
    "an empty disk: it takes their later records without the earlier ones (KAFKA-6003)",
    cluster=cluster(),
    workload=replace(LOAD, rate_records_per_s=60),
    faults=(
        fault("delete_records", "topic", 5, 1, once=True),
        fault("disk_emptied", "straggler", 8, 2),
    ),
    guarantees=("replica_divergence", "slow_recovery"),
    duration_s=22.0,
    recovery_deadline_s=12.0,
)
"""So few records that each is a batch of its own: none is deleted in part."""

REFILLED_WITHIN_BATCH = replace(
    REFILLED_REPLICA,
    name="refilled-within-batch",
    about="records are deleted up to the middle of a batch, then a follower returns with an empty "
    "disk: it takes that batch (KAFKA-6975)",
    workload=replace(LOAD, options={"linger_ms": "200"}),
)

CUT_SNAPSHOT = Scenario(
    name="power-cut-snapshot",
    about="a broker whose logs roll all the time loses power before the producer snapshots of the "
    "last rolls are on disk: it starts without them (KAFKA-5747)",
    cluster=cluster(log_flush_offset_checkpoint_interval_ms="100"),
    workload=WorkloadSpec(
        topics=(TopicSpec(partitions=12, config=DURABLE.config | {"segment.bytes": "16384"}),),
        rate_records_per_s=200,
    ),
    faults=(fault("power_cut", "follower", 30, 4, snapshots=True),),
    guarantees=(*REPLICATION, "duplicate", "unexpected_exit"),
    duration_s=42.0,
)
"""Recovery begins at the recovery point, and a segment's begin is one as soon as the segment before
it is flushed. Brokers write recovery points half a minute after their start for the first time."""

LATE_REGISTRATION = Scenario(
    name="late-registration",
    about="a broker loses its ZooKeeper session and gets ZooKeeper's answers late: the controller "
    "knows its new epoch first, and the broker follows its commands (KAFKA-9839)",
    cluster=cluster(),
    workload=LOAD,
    faults=(
        FaultSpec(
            fault="latency",
            target="bystander->zookeeper",
            at_s=4,
            duration_s=9,
            options={"latency_ms": 500, "answers_only": True},
            choice="late-registration",
        ),
        FaultSpec(
            fault="session_expired",
            target="bystander",
            at_s=6,
            duration_s=2,
            choice="late-registration/1",
        ),
    ),
    guarantees=(*REPLICATION, "slow_recovery", "disagreement"),
    duration_s=20.0,
    recovery_deadline_s=15.0,
)
"""Of the two brokers that are not the controller both choices select the same one."""

DIVERGING_FETCH = Scenario(
    name="diverging-fetch",
    about="a leader dies with a long tail that no other replica has, and returns to a successor "
    "with a shorter log: its fetch beyond that log's end makes it no member of the ISR, and the "
    "successor may die (KAFKA-13141)",
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=replace(IMPATIENT, producers=5, rate_records_per_s=120),
    faults=(
        fault("partition", "followers->leader", 4, 8, answers_only=True),
        fault("crash", "leader", 10, 3),
        FaultSpec(
            fault="lose_request",
            target="client->leader",
            at_s=11,
            after_event="election",
            within_s=8,
            duration_s=12,
            options={"api": "Produce", "occurrence": 30, "times": 0},
        ),
        fault("delay_answer", "followers->leader", 15.3, 12, api="Fetch", times=0, delay_ms=4000),
        FaultSpec(
            fault="crash",
            target="leader",
            at_s=15.3,
            after_event="isr_growth",
            within_s=15,
            duration_s=6,
        ),
    ),
    guarantees=(*REPLICATION, "unclean_leader"),
    duration_s=34.0,
)
"""The first leader is the preferred one, so it leads when its successor dies. The producers reach
the successor with a few requests, fewer records than the tail; its answers are so late that the
first leader cannot have fetched them by then."""

LARGEST_TIMESTAMP = Scenario(
    name="largest-timestamp",
    about="batches of several records whose timestamps rise and fall, without faults: a lookup of "
    "the largest timestamp returns the offset of its record (KAFKA-16310)",
    cluster=cluster(),
    workload=replace(LOAD, options={"timestamp_jitter_ms": "400", "linger_ms": "100"}),
    guarantees=("time_index_wrong",),
    duration_s=10.0,
)

CHANGED_DEFAULTS = Scenario(
    name="changed-defaults",
    about="an administrator changes a default of all brokers twice, then a follower dies: a topic "
    "keeps its own min.insync.replicas of 3 (KAFKA-9254)",
    cluster=cluster(),
    workload=replace(IMPATIENT, topics=(TopicSpec(config={"min.insync.replicas": "3"}),)),
    faults=(
        fault("broker_defaults", "all", 4, 14),
        fault("crash", "follower", 8, 8),
    ),
    guarantees=(*REPLICATION, "ack_below_min_isr"),
    duration_s=20.0,
)

LOST_EPOCHS = Scenario(
    name="power-cut-epochs",
    about="a follower loses power and the files of its leader epochs, in the first epoch of its "
    "partitions: recovery finds the epochs in the logs (KAFKA-10432)",
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("power_cut", "follower", 6, 3, epochs=True),),
    guarantees=(*REPLICATION, "duplicate", "epoch_lineage"),
    duration_s=16.0,
)
