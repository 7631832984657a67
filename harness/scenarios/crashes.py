"""Processes that die, stop or restart."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

LOAD = WorkloadSpec(topics=(DURABLE,))
PATIENT = WorkloadSpec(topics=(DURABLE,), delivery_timeout_ms=60_000)
MANY = WorkloadSpec(topics=(TopicSpec(partitions=15, config=DURABLE.config),))
STORM = WorkloadSpec(
    topics=(TopicSpec(config=DURABLE.config | {"segment.bytes": "65536", "flush.ms": "500"}),),
    delivery_timeout_ms=60_000,
    options={"repeated_rounds": "200", "repeated_every_ms": "100", "repeated_late": "1"},
)

LEADER_CRASH = Scenario(
    name="leader-crash",
    about="SIGKILL of a partition's leader, back after 14 s: another replica leads, nothing is "
    "lost, and work continues",
    suites=("elections",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("crash", "leader", 5, 14),),
    guarantees=(
        *REPLICATION,
        "duplicate",
        "unclean_leader",
        "epoch_went_back",
        "no_progress",
        "slow_recovery",
        "dead_replica_in_isr",
    ),
    survives=True,
)

CROWDED_CRASH = Scenario(
    name="crowded-crash",
    about="SIGKILL of the leader of five partitions, back after 12 s: all of them are led again at "
    "once",
    suites=("elections",),
    cluster=cluster(),
    workload=MANY,
    faults=(fault("crash", "leader", 5, 12),),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "no_progress", "slow_recovery"),
    survives=True,
)

FOLLOWER_CRASH = Scenario(
    name="follower-crash",
    about="SIGKILL of a follower, back after 14 s: the ISR shrinks and grows again, and work "
    "continues",
    suites=("replication",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("crash", "follower", 5, 14),),
    guarantees=(*REPLICATION, "duplicate", "no_progress", "slow_recovery"),
    survives=True,
)

CONTROLLER_CRASH = Scenario(
    name="controller-crash",
    about="SIGKILL of the controller, then of a leader under the next one",
    suites=("elections",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("crash", "controller", 5, 9), fault("crash", "leader", 21, 7)),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "epoch_went_back"),
    duration_s=32.0,
)

PAUSE_LEADER = Scenario(
    name="pause-leader",
    about="SIGSTOP of a leader beyond its session: it continues deposed, and epochs must fence it",
    suites=("elections",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("pause", "leader", 5, 10),),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "epoch_went_back"),
)

ROLLING_RESTART = Scenario(
    name="rolling-restart",
    about="SIGTERM and start of every broker, one after another: other replicas lead before a "
    "broker stops",
    suites=("replication",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("rolling_restart", "all", 4, 0),),
    guarantees=(
        *REPLICATION,
        "duplicate",
        "unclean_leader",
        "epoch_went_back",
        "slow_recovery",
    ),
)

RESTART_STORM = Scenario(
    name="restart-storm",
    about="SIGKILL of all brokers at once, then again with slow followers and batches in flight; "
    "logs roll and are flushed, and a client sends again what an idle producer had sent: recovery "
    "from disk and producer state",
    suites=("idempotence", "replication"),
    cluster=cluster(
        log_flush_scheduler_interval_ms="500",
        log_flush_offset_checkpoint_interval_ms="500",
        log_initial_task_delay_ms="500",
    ),
    workload=STORM,
    faults=(
        fault("crash", "all", 5, 1),
        fault("latency", "followers->leader", 15, 3, latency_ms=300),
        fault("crash", "all", 17, 1.5),
    ),
    guarantees=(*REPLICATION, "duplicate"),
    recovery_deadline_s=60.0,
)
"""Logs are flushed, so that recovery begins in the middle of a log, from a producer snapshot."""

CRASH_LOOP = Scenario(
    name="crash-loop",
    about="a follower is killed again soon after every start, while the others continue",
    suites=("network",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("crash_loop", "follower", 5, 12),),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader"),
    duration_s=22.0,
)

HUNGRY_LEADER = Scenario(
    name="hungry-leader",
    about="a leader with a twentieth of a processor: everything is late, and its session is in "
    "danger",
    suites=("network",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("starve", "leader", 5, 9, cpus=0.05),),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader"),
    duration_s=20.0,
)

OUT_OF_DESCRIPTORS = Scenario(
    name="out-of-descriptors",
    about="a leader can open no more files or sockets; Apache Kafka exits and is started again",
    suites=("network",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("out_of_descriptors", "leader", 5, 7),),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader"),
    duration_s=22.0,
)
