"""Disks that lose, reject or damage data."""

from __future__ import annotations

from msgspec.structs import replace

from urteil.harness.scenario import ClusterSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, LAX, REPLICATION, cluster, fault

LOAD = WorkloadSpec(topics=(DURABLE,))
PATIENT = WorkloadSpec(topics=(DURABLE,), delivery_timeout_ms=60_000)
FLUSHED = WorkloadSpec(
    topics=(TopicSpec(config={"min.insync.replicas": "2", "flush.ms": "1500"}),),
    delivery_timeout_ms=60_000,
)
"""Logs are flushed often, so that a power cut finds both flushed and unflushed data."""

SEGMENTS = WorkloadSpec(
    topics=(
        TopicSpec(
            config={"min.insync.replicas": "2", "flush.ms": "1000", "segment.bytes": "16384"}
        ),
    ),
    delivery_timeout_ms=60_000,
)
"""A segment holds about a second of the load."""

RECORDED = ClusterSpec(records_flushes=True)
FLUSHING = replace(
    RECORDED,
    config={
        "log.flush.scheduler.interval.ms": "500",
        "log.flush.offset.checkpoint.interval.ms": "1000",
        "log.initial.task.delay.ms": "500",
    },
)

POWER_CUT = Scenario(
    name="power-cut",
    about="a leader's machine loses power and everything that it had not flushed, then the next "
    "leader's: the other replicas have it",
    suites=("disk",),
    cluster=RECORDED,
    workload=LOAD,
    faults=(fault("power_cut", "leader", 5, 9), fault("power_cut", "leader", 21, 8)),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "epoch_lineage", "unexpected_exit"),
    duration_s=33.0,
)

POWER_CUT_ALL = Scenario(
    name="power-cut-all",
    about="all machines lose power at once, with logs flushed every 1.5 s: unflushed records are "
    "lost, as permitted, flushed ones stay",
    suites=("disk",),
    cluster=FLUSHING,
    workload=FLUSHED,
    faults=(fault("power_cut", "all", 14, 2),),
    guarantees=("phantom", "replica_divergence", "epoch_lineage", "hole", "lost_write"),
    must_find=("lost_write",),
    duration_s=28.0,
    recovery_deadline_s=60.0,
)

POWER_CUT_SEGMENTS = replace(
    POWER_CUT_ALL,
    name="power-cut-segments",
    about="all machines lose power at once while small segments are created: a flushed segment "
    "stays, since its broker flushed the directory, too",
    workload=SEGMENTS,
)

DISK_FULL = Scenario(
    name="disk-full",
    about="a leader's disk is full: it exits, the others continue, and it returns with room again",
    suites=("disk",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("disk_full", "leader", 5, 10),),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader"),
)

DISK_READONLY = Scenario(
    name="disk-readonly",
    about="a leader's log directory turns read-only while its open files can still be written",
    suites=("disk",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("disk_readonly", "leader", 5, 12),),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader"),
    duration_s=27.0,
)

DISK_SLOW = Scenario(
    name="disk-slow",
    about="every write to a leader's disk takes 150 ms, then to a follower's: it costs time only",
    suites=("disk",),
    cluster=cluster(),
    workload=PATIENT,
    faults=(
        fault("disk_slow", "leader", 5, 7, delay_ms=150),
        fault("disk_slow", "follower", 15, 7, delay_ms=150),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader"),
    duration_s=28.0,
)

DISK_GONE = Scenario(
    name="disk-gone",
    about="one of a broker's two log directories is gone: others lead its partitions, and the "
    "broker continues with the rest",
    suites=("disk",),
    cluster=ClusterSpec(log_dirs=2),
    workload=LOAD,
    faults=(fault("disk_gone", "leader", 5, 15),),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "no_progress"),
    duration_s=30.0,
    survives=True,
)

DISK_EMPTIED = Scenario(
    name="disk-emptied",
    about="a leader returns at once with an empty disk, then another: others lead, and the "
    "replica is filled again",
    suites=("disk",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("disk_emptied", "leader", 5, 0), fault("disk_emptied", "leader", 18, 0)),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "epoch_lineage"),
    duration_s=30.0,
)

DISK_EMPTIED_LAST = Scenario(
    name="disk-emptied-last",
    about="the last replica in sync returns at once with an empty disk (KAFKA-14139): everything "
    "is lost, as permitted",
    suites=("disk",),
    cluster=cluster(min_insync_replicas="1"),
    workload=WorkloadSpec(topics=(LAX,), delivery_timeout_ms=60_000),
    faults=(
        fault("partition", "followers->leader", 4, 9),
        fault("disk_emptied", "leader", 12, 2),
    ),
    guarantees=("phantom", "replica_divergence", "unclean_leader"),
    must_find=("lost_write",),
    duration_s=27.0,
)
"""KAFKA-14139, which is not fixed with ZooKeeper."""

SMALL_SEGMENTS = WorkloadSpec(
    topics=(TopicSpec(config={"min.insync.replicas": "2", "segment.bytes": "16384"}),)
)

SEGMENT_DAMAGED = Scenario(
    name="segment-damaged",
    about="closed segments are damaged: one of a follower that is down, one of a follower that "
    "runs and is replaced: recovery finds it, or the replica is fetched again",
    suites=("disk",),
    cluster=cluster(),
    workload=SMALL_SEGMENTS,
    faults=(
        fault("segment_damaged", "follower", 7, 5),
        fault("segment_damaged", "follower", 19, 2, up=True, partition=1),
    ),
    guarantees=(*REPLICATION, "duplicate", "corrupt", "hole"),
    duration_s=30.0,
)
