"""Groups of the protocol `consumer` (KIP-848): the coordinator assigns, and members have epochs."""

from __future__ import annotations

from urteil.harness.scenario import (
    ClusterSpec,
    FaultSpec,
    Scenario,
    TopicSpec,
    WorkloadSpec,
)
from urteil.harness.scenarios import groups
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault
from urteil.harness.scenarios.quorum import TARGET

PROTOCOL = {"group_protocol": "consumer", "zombie_commits": "true"}
GUARANTEES = ("overlapping_owners", "commit_beyond_processed", "no_delivery", *groups.POSITIONS)
EPOCHS = ("zombie_commit", "generation_went_back")
"""Judged where a session of a member has several epochs."""

TOPIC = TopicSpec(partitions=8, config=DURABLE.config)
"""Enough partitions for every member that joins while others stay."""


def load(members: int = 3, **options: str) -> WorkloadSpec:
    """A group of the protocol, whose members also commit in every epoch that has ended."""
    return WorkloadSpec(
        kind="group", topics=(TOPIC,), consumers=members, options=PROTOCOL | options
    )


def group_scenario(
    *,
    name: str,
    about: str,
    faults: tuple[FaultSpec, ...],
    workload: WorkloadSpec,
    brokers: ClusterSpec | None = None,
    besides: tuple[str, ...] = EPOCHS,
    duration_s: float,
) -> Scenario:
    """A scenario of Apache Kafka 4, which keeps the guarantees of groups, and those of
    `besides`."""
    return Scenario(
        name=name,
        about=about,
        suites=("groups",),
        cluster=brokers or cluster(),
        workload=workload,
        faults=faults,
        guarantees=(*GUARANTEES, *besides),
        duration_s=duration_s,
        target=TARGET,
    )


CONSUMER_PROTOCOL_DEATHS = group_scenario(
    name="consumer-protocol-deaths",
    about="a member of a consumer group (KIP-848) is killed, another one stands still beyond its "
    "session: others get their partitions once, and commits in old member epochs are rejected",
    workload=load(),
    faults=(
        fault("kill_client", "member", 6, 8),
        fault("pause_client", "member", 24, 9),
    ),
    besides=(*EPOCHS, *REPLICATION, "departed_member_kept"),
    duration_s=38.0,
)

CONSUMER_PROTOCOL_SLOW_POLL = group_scenario(
    name="consumer-protocol-slow-poll",
    about="members of a consumer group (KIP-848) heartbeat but do not poll for twice "
    "max.poll.interval.ms, one after the other: the group continues without them",
    workload=load(max_poll_interval_ms="4000", remote_assignor="range"),
    faults=(
        fault("slow_poll", "member", 5, 8),
        fault("slow_poll", "member", 18, 8),
    ),
    duration_s=30.0,
)

CONSUMER_PROTOCOL_STORM = group_scenario(
    name="consumer-protocol-storm",
    about="members of a consumer group (KIP-848) join and leave in turn while others keep their "
    "partitions: no partition has two owners at once",
    workload=load(2, remote_assignor="uniform"),
    faults=(fault("rebalance_storm", "members", 5, 12),),
    besides=(*EPOCHS, "member_expelled"),
    duration_s=24.0,
)

CONSUMER_PROTOCOL_COORDINATOR = group_scenario(
    name="consumer-protocol-coordinator",
    about="the coordinator of a consumer group (KIP-848) dies, then the next one, while members "
    "join and leave: epochs and target assignments are in the log",
    workload=load(),
    faults=(
        fault("crash", "coordinator", 5, 5),
        fault("rebalance_storm", "members", 13, 6),
        fault("crash", "coordinator", 15, 5),
    ),
    besides=(*EPOCHS, *REPLICATION, "member_expelled"),
    duration_s=28.0,
)

CONSUMER_PROTOCOL_MIGRATION = group_scenario(
    name="consumer-protocol-migration",
    about="a classic group migrates to the protocol of KIP-848 while it works: each member that "
    "dies returns with the new protocol, members of both join and leave, and a coordinator dies",
    workload=load(migrates="true"),
    faults=(
        fault("kill_client", "member", 5, 3),
        fault("rebalance_storm", "members", 17, 6),
        fault("kill_client", "members", 25, 3),
        fault("crash", "coordinator", 27, 5),
    ),
    besides=(),
    duration_s=44.0,
)

CONSUMER_PROTOCOL_STATIC = group_scenario(
    name="consumer-protocol-static",
    about="a static member of a consumer group (KIP-848) is killed, and returns before its session "
    "has ended; then another session requests the instance of a live one, while the coordinator "
    "dies: one session at a time has the instance",
    workload=load(static="true"),
    faults=(
        fault("kill_client", "member", 5, 2),
        fault("second_session", "member", 16, 9),
        fault("crash", "coordinator", 18, 5),
    ),
    besides=(*EPOCHS, *REPLICATION),
    duration_s=36.0,
)

CONSUMER_PROTOCOL_CUT = group_scenario(
    name="consumer-protocol-cut",
    about="followers of a consumer group's coordinator (KIP-848) get no answers; all members die, "
    "then the coordinator: no acknowledged offset is lost",
    brokers=cluster(replica_lag_time_max_ms="15000"),
    workload=load(),
    faults=(
        fault(
            "partition", "followers->leader", 5, 10, answers_only=True,
            topic=groups.OFFSETS, partition=groups.PARTITION,
        ),
        fault("kill_client", "members", 7, 6),
        fault("crash", "leader", 7.5, 8, topic=groups.OFFSETS, partition=groups.PARTITION),
    ),
    besides=(),
    duration_s=26.0,
)  # fmt: skip
