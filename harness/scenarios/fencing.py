"""What must not be believed: stale leaders, sequences out of order, logs of an epoch that lost."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

# kafka-python has one batch of a partition under way with idempotence, and five without.
DEEP = WorkloadSpec(topics=(DURABLE,), producers=5, idempotent=False)

REPEATED_BATCHES = Scenario(
    name="repeated-batches",
    about="a producer with five batches under way sends them again, as if all answers had got "
    "lost, and one too early, before and after a leader crash; old producers are looked for often",
    cluster=cluster(producer_id_expiration_check_interval_ms="20"),
    workload=WorkloadSpec(topics=(DURABLE,), options={"repeated_rounds": "100"}),
    faults=(fault("crash", "leader", 5, 8),),
    guarantees=(*REPLICATION, "duplicate", "sequence_gap", "reordered_send"),
    duration_s=20.0,
)

FAST_FAILOVER = Scenario(
    name="fast-failover",
    about="two leaders in a row whose records the next one lacks: more than one epoch must be cut",
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=DEEP,
    faults=(
        fault("partition", "successor->leader", 6, 11, answers_only=True),
        fault("partition", "straggler->successor", 6.3, 11, answers_only=True),
        fault("shutdown", "leader", 7.6, 9.5),
        fault("crash", "leader", 11, 7),
    ),
    guarantees=(*REPLICATION, "unclean_leader"),
    duration_s=26.0,
)

LEADER_MOVES = Scenario(
    name="leader-moves",
    about="brokers are restarted and get their leadership back from a living leader, which must "
    "not go on acknowledging: acks=1 would lose all of it",
    cluster=cluster(
        auto_leader_rebalance_enable="true",
        leader_imbalance_check_interval_seconds="2",
        leader_imbalance_per_broker_percentage="0",
    ),
    workload=WorkloadSpec(topics=(DURABLE,), producers=5, acks=1, idempotent=False),
    faults=(fault("rolling_restart", "all", 4, 0),),
    guarantees=(*REPLICATION, "unclean_leader", "epoch_went_back"),
)

FAMILY = (REPEATED_BATCHES, FAST_FAILOVER, LEADER_MOVES)
