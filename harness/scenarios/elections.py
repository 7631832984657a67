"""Leader elections: eligible replicas, the log of the new leader, truncation of followers."""

from __future__ import annotations

from msgspec.structs import replace

from urteil.harness.scenario import FaultSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, IMPATIENT, LAX, REPLICATION, cluster, fault

LOAD = WorkloadSpec(topics=(DURABLE,))
# Producers that do not wait for each other: while one gets its response, records of another are
# on their way, so the leader's high watermark is ahead of its followers'.
MANY_LOAD = WorkloadSpec(topics=(DURABLE,), producers=5)
LAX_LOAD = WorkloadSpec(topics=(LAX,))
STEADY_LOAD = WorkloadSpec(topics=(DURABLE,), rate_records_per_s=60)
"""Records with pauses, so that a cut reaches both followers between two of them."""

LONE_LEADER = (
    fault("partition", "followers->leader", 4, 9),
    fault("crash", "leader", 12, 9),
)
"""The followers leave the ISR; then the leader, its last member, dies while the followers are
reachable again."""

UNCLEAN_ON = Scenario(
    name="unclean-on",
    about="unclean election allowed: a follower outside the ISR leads, and the tail is lost, as "
    "permitted",
    suites=("elections",),
    cluster=cluster(unclean_leader_election_enable="true", min_insync_replicas="1"),
    workload=LAX_LOAD,
    faults=LONE_LEADER,
    guarantees=("phantom", "replica_divergence"),
    must_find=("lost_write",),
    duration_s=27.0,
)

UNCLEAN_OFF = Scenario(
    name="unclean-off",
    about="unclean election forbidden: the partition waits for its last leader, and nothing is "
    "lost",
    suites=("elections",),
    cluster=cluster(min_insync_replicas="1"),
    workload=LAX_LOAD,
    faults=LONE_LEADER,
    guarantees=("lost_write", "phantom", "replica_divergence", "unclean_leader"),
    duration_s=27.0,
)

UNCLEAN_REQUESTED = Scenario(
    name="unclean-asked",
    about="unclean election forbidden, until an administrator requests one: the tail is lost, as "
    "permitted",
    suites=("elections",),
    cluster=cluster(min_insync_replicas="1"),
    workload=LAX_LOAD,
    faults=(*LONE_LEADER, fault("elect_unclean", "topic", 13.5, 7)),
    guarantees=("phantom", "replica_divergence"),
    must_find=("lost_write",),
    duration_s=27.0,
)

UNCLEAN_ALLOWED = Scenario(
    name="unclean-allowed",
    about="unclean election forbidden, until an administrator allows it for the topic: a live "
    "replica leads at once, and the tail is lost, as permitted",
    suites=("elections",),
    cluster=cluster(min_insync_replicas="1"),
    workload=LAX_LOAD,
    faults=(
        LONE_LEADER[0],
        fault("crash", "leader", 12, 25),
        fault("allow_unclean", "topic", 13.5, 22),
    ),
    guarantees=("phantom", "replica_divergence", "slow_recovery"),
    must_find=("lost_write",),
    duration_s=42.0,
)
"""The last in-sync replica is down for longer than another replica needs to lead."""

LONE_SHUTDOWN = Scenario(
    name="lone-shutdown",
    about="followers leave the ISR, then its last member shuts down cleanly: no replica outside "
    "the ISR may lead",
    suites=("elections",),
    cluster=cluster(min_insync_replicas="1"),
    workload=LAX_LOAD,
    faults=(LONE_LEADER[0], fault("shutdown", "leader", 9, 12)),
    guarantees=("lost_write", "phantom", "replica_divergence", "unclean_leader"),
    duration_s=27.0,
)
"""A leader with a controlled shutdown moves its leadership to the ISR alone."""

MIN_ISR = Scenario(
    name="min-isr",
    about="both followers die, and the ISR falls below min ISR: acks=all must be rejected",
    suites=("replication",),
    cluster=cluster(),
    workload=IMPATIENT,
    faults=(fault("crash", "followers", 4, 10),),
    guarantees=(*REPLICATION, "ack_below_min_isr"),
    duration_s=20.0,
)

CUT_CRASH = Scenario(
    name="cut-crash",
    about="followers get no answers from their leader, which dies 1.5 s later and returns with a "
    "tail that no other replica has: truncation by epoch",
    suites=("replication",),
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=replace(STEADY_LOAD, producers=5),  # of each, one request is in the tail
    faults=(
        fault("partition", "followers->leader", 5, 9.5, answers_only=True),
        fault("crash", "leader", 6.5, 8.5),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "vanished_read"),
    duration_s=22.0,
)

LAST_FOLLOWER = Scenario(
    name="last-follower",
    about="SIGKILL of one follower; without it in the ISR, the other gets no answers from their "
    "leader, which dies 1.2 s later: no record is committed before the last follower has it",
    suites=("replication",),
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=STEADY_LOAD,
    faults=(
        fault("crash", "straggler", 3, 13),
        fault("partition", "successor->leader", 8.5, 7.5, answers_only=True),
        fault("crash", "leader", 9.7, 6.3),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader"),
    duration_s=21.0,
)
"""With one follower, only the leader has the first record after the cut."""

CUT_SUCCESSOR = Scenario(
    name="cut-successor",
    about="one follower gets no answers from its leader, which dies after producers have repeated "
    "their unanswered sends; that follower is still in the ISR and leads next: a record is "
    "committed when all of the ISR has it",
    suites=("replication",),
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=LOAD,
    faults=(
        fault("partition", "successor->leader", 5, 11, answers_only=True),
        fault("crash", "leader", 9.5, 6.5),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "vanished_read"),
    duration_s=22.0,
)
"""The entire ISR must have a record, not just min.insync.replicas of it; this includes a resent
record."""

SLOW_CRASH = Scenario(
    name="slow-crash",
    about="a leader with slow followers dies: they have unacknowledged records, which producers "
    "send again, and the new leader deduplicates them",
    suites=("idempotence", "replication"),
    cluster=cluster(),
    workload=LOAD,
    faults=(
        fault("latency", "followers->leader", 5, 4, latency_ms=300),
        fault("crash", "leader", 8, 8),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader"),
    duration_s=22.0,
)

EPOCH_TRUNCATION = Scenario(
    name="epoch-truncation",
    about="with slow fetches, a leader shuts down and its successor is killed, while the last "
    "replica could never query the successor: truncation by epoch, not by high watermark "
    "(KIP-101)",
    suites=("replication",),
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=MANY_LOAD,
    faults=(
        fault("latency", "followers->leader", 5, 9, latency_ms=500),
        fault("partition", "straggler->successor", 7, 9),
        fault("shutdown", "leader", 8, 9),
        fault("crash", "leader", 8.5, 9),
    ),
    guarantees=(
        *REPLICATION,
        "duplicate",
        "unclean_leader",
        "end_below_ack",
        "nonmonotonic_poll",
    ),
    duration_s=26.0,
)

UNTOLD_SUCCESSOR = Scenario(
    name="untold-successor",
    about="a leader dies when its ISR has lost one follower, before the other one learns the new "
    "high watermark; the first one fetches from that one over a narrow link, then that one dies "
    "too: a replica without the committed records does not lead (KAFKA-7128)",
    suites=("replication",),
    cluster=cluster(replica_lag_time_max_ms="5000"),
    workload=MANY_LOAD,
    faults=(
        fault("latency", "successor->leader", 3, 18, latency_ms=800),
        fault("bandwidth", "straggler->successor", 3, 21, rate_kb_per_s=3),
        fault("partition", "straggler->leader", 4, 17),
        FaultSpec(fault="crash", target="leader", at_s=5, after_event="isr_shrink", duration_s=13),
        FaultSpec(
            fault="crash",
            target="leader",
            at_s=10,
            after_event="isr_growth",
            within_s=9,
            duration_s=6,
        ),
    ),
    guarantees=(*REPLICATION, "unclean_leader"),
    duration_s=34.0,
)
"""The follower that was left behind has records that the second leader knows to be committed. It
may not be in sync before it has all records that existed when its leader began (KAFKA-7128)."""

LAGGING_SUCCESSOR = Scenario(
    name="lagging-successor",
    about="the next in line falls out of the ISR, then the leader dies: it must not be elected",
    suites=("replication",),
    cluster=cluster(),
    workload=LOAD,
    faults=(
        fault("partition", "successor->leader", 4, 16),
        fault("crash", "leader", 12, 8),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader"),
)

LAGGING_FOLLOWER = Scenario(
    name="lagging-follower",
    about="a follower does not reach its leader for 12 s: it leaves the ISR, and work continues",
    suites=("replication",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("partition", "successor->leader", 4, 12),),
    guarantees=(*REPLICATION, "duplicate", "no_progress", "slow_recovery"),
    duration_s=18.0,
    survives=True,
)

SLOW_RETURN = Scenario(
    name="slow-return",
    about="a follower returns over a narrow link, far behind; then the two in sync die: the "
    "partition waits for them",
    suites=("elections",),
    cluster=cluster(replica_lag_time_max_ms="60000"),
    workload=LOAD,
    faults=(
        fault("bandwidth", "straggler->leader", 3, 21, rate_kb_per_s=8),
        fault("crash", "straggler", 4, 6),
        fault("crash", "successor", 17.9, 6),
        fault("crash", "leader", 18, 6),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader"),
    duration_s=30.0,
)
"""A replica that joins the ISR before it has the committed records could be elected without them;
the controller does not check its lag."""

EARLY_RETURN = Scenario(
    name="early-return",
    about="a preferred leader returns far behind, over a narrow link, while the controller gives "
    "leadership back every second: it leads once it is in sync, and not before",
    suites=("elections",),
    cluster=cluster(
        replica_lag_time_max_ms="60000",
        auto_leader_rebalance_enable="true",
        leader_imbalance_check_interval_seconds="1",
        leader_imbalance_per_broker_percentage="0",
    ),
    workload=LOAD,
    faults=(
        fault("bandwidth", "straggler->all", 3, 18, rate_kb_per_s=8),
        fault("crash", "straggler", 4, 6),
    ),
    guarantees=(
        *REPLICATION,
        "duplicate",
        "unclean_leader",
        "slow_recovery",
        "preferred_leader_ignored",
    ),
    duration_s=38.0,
)
"""Each broker is the preferred leader of one partition; it leads once it is in sync, not before."""
