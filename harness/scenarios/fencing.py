"""Fencing of stale leaders, of sequences out of order, and of logs of a lost epoch."""

from __future__ import annotations

from msgspec.structs import replace

from urteil.harness.scenario import ClusterSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, SENT_AGAIN, SOLE, cluster, fault

# kafka-python has one batch of a partition under way with idempotence, and five without.
DEEP = WorkloadSpec(topics=(DURABLE,), producers=5, idempotent=False)
PATIENT = WorkloadSpec(topics=(DURABLE,), producers=5, delivery_timeout_ms=60_000)

REPEATED_BATCHES = Scenario(
    name="repeated-batches",
    about="a client with five batches in flight sends each of them twice, as if all answers were "
    "lost, and one too early, beyond the largest sequence; segments roll, and a leader with slow "
    "followers dies; old producers are searched often",
    suites=("idempotence",),
    cluster=cluster(producer_id_expiration_check_interval_ms="20"),
    workload=WorkloadSpec(
        topics=(TopicSpec(config=DURABLE.config | {"segment.bytes": "16384"}),),
        options=SENT_AGAIN,
    ),
    faults=(
        fault("latency", "followers->leader", 4, 2, latency_ms=300),
        fault("crash", "leader", 5.5, 8),
    ),
    guarantees=(*REPLICATION, "duplicate", "sequence_gap", "reordered_send", "misplaced_ack"),
    duration_s=20.0,
)

FAST_FAILOVER = Scenario(
    name="fast-failover",
    about="a leader with a cut-off follower shuts down, that follower leads and is killed, and "
    "the third leads, which never reached it: truncation over more than one epoch (KIP-279)",
    suites=("elections",),
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=DEEP,
    faults=(
        fault("partition", "successor->leader", 6, 11, answers_only=True),
        fault("partition", "straggler->successor", 6.3, 11, answers_only=True),
        fault("shutdown", "leader", 7.6, 9.5),
        fault("crash", "leader", 11, 7),
    ),
    guarantees=(*REPLICATION, "unclean_leader", "slow_recovery"),
    duration_s=26.0,
)

LEADER_MOVES = Scenario(
    name="leader-moves",
    about="brokers restart and get their leadership back from live leaders with acks=1: a deposed "
    "leader acknowledges nothing",
    suites=("elections",),
    cluster=cluster(
        auto_leader_rebalance_enable="true",
        leader_imbalance_check_interval_seconds="2",
        leader_imbalance_per_broker_percentage="0",
    ),
    workload=WorkloadSpec(topics=(DURABLE,), producers=5, acks=1, idempotent=False),
    faults=(fault("rolling_restart", "all", 4, 0),),
    guarantees=(*REPLICATION, "two_leaders", "unclean_leader", "epoch_went_back"),
)

RETURNED_LEADER = Scenario(
    name="returned-leader",
    about="a leader dies with records that no other replica has, truncates them as a follower and "
    "leads again; meanwhile their producers reach no other broker, and send them again: a batch "
    "is known only as long as the log has it",
    suites=("idempotence",),
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=PATIENT,
    faults=(
        fault("partition", "followers->leader", 5, 4, answers_only=True),
        fault("partition", "client->successor", 6, 17),
        fault("crash", "leader", 6.5, 2),
        fault("crash", "leader", 22, 5),
    ),
    guarantees=(*REPLICATION, "duplicate", "sequence_gap", "unclean_leader", "no_progress"),
    duration_s=32.0,
)

UNANSWERED_RESTART = Scenario(
    name="unanswered-restart",
    about="the only replica's broker shuts down and returns while every acknowledgement resets "
    "its connection: the snapshot of a clean stop knows its producers",
    suites=("idempotence",),
    cluster=cluster(),
    workload=replace(PATIENT, topics=(SOLE,)),
    faults=(
        fault("reset", "client->leader", 5, 6, answers_only=True),
        fault("shutdown", "leader", 7, 2.5),
    ),
    guarantees=("lost_write", "phantom", "inconsistent_offset", "duplicate", "sequence_gap"),
    duration_s=18.0,
)

NEAREST_REPLICA = Scenario(
    name="nearest-replica",
    about="consumers read from the replica in their rack (KIP-392); one of these has records that "
    "the last replica lacks, then its leader and it die: followers serve committed records only",
    suites=("elections",),
    cluster=ClusterSpec(racks=True, config={"replica.lag.time.max.ms": "60000"}),
    workload=replace(PATIENT, consumers=3, options={"racks": "1"}),
    faults=(
        fault("partition", "straggler->leader", 5, 17, answers_only=True),
        fault("partition", "straggler->successor", 5.5, 16.5, answers_only=True),
        fault("crash", "leader", 11, 12),
        fault("crash", "leader", 19, 5),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "vanished_read"),
    duration_s=28.0,
)

LATE_METADATA = Scenario(
    name="late-metadata",
    about="a broker restarts, then gets the controller's UpdateMetadata for its previous life "
    "again: it ignores the request and reports the present leaders (KAFKA-7235)",
    suites=("elections",),
    cluster=cluster(),
    workload=WorkloadSpec(topics=(DURABLE,)),
    faults=(fault("late_command", "bystander", 4, 1),),
    guarantees=(
        *REPLICATION,
        "disagreement",
        "no_progress",
        "slow_recovery",
    ),
    duration_s=24.0,
)

LATE_STOP = Scenario(
    name="late-stop",
    about="a broker restarts, then gets the StopReplica of its shutdown again: it continues to "
    "follow",
    suites=("elections",),
    cluster=cluster(),
    workload=WorkloadSpec(topics=(DURABLE,)),
    faults=(fault("late_command", "bystander", 4, 1, command="StopReplica"),),
    guarantees=(*REPLICATION, "slow_recovery", "disagreement"),
)
