"""Consumer groups: members that die, pause, join and leave; coordinators that fail."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

OWNERSHIP = ("two_owners", "commit_beyond_processed", "no_delivery")
POSITIONS = ("commit_went_back", "commit_register")
OFFSETS = "__consumer_offsets"
PARTITION, ZOMBIE_PARTITION = 1, 4
"""Partitions of the offsets topic, of the five that the lab configures: those of the lab's group
and a zombie's."""


def load(members: int = 3, **options: str) -> WorkloadSpec:
    """A group that commits after processing."""
    return WorkloadSpec(kind="group", topics=(DURABLE,), consumers=members, options=options)


MEMBER_KILLED = Scenario(
    name="member-killed",
    about="SIGKILL of a group member and of a producer in the middle of batches; new sessions "
    "take over: one owner a partition, nothing skipped",
    suites=("groups",),
    cluster=cluster(),
    workload=load(linger_ms="200", max_poll_records="7"),
    faults=(fault("kill_client", "member", 5, 8), fault("kill_client", "producer", 17, 2)),
    guarantees=(
        *REPLICATION,
        "duplicate",
        *OWNERSHIP,
        *POSITIONS,
        "poll_skip",
        "departed_member_kept",
    ),
    duration_s=24.0,
)

GROUP_CALM = Scenario(
    name="group-calm",
    about="a group without faults: no live member is put out, and each has the assignment of its "
    "leader",
    suites=("groups",),
    cluster=cluster(),
    workload=load(),
    faults=(),
    guarantees=(
        *OWNERSHIP,
        *POSITIONS,
        "poll_skip",
        "no_progress",
        "commits_stand_still",
        "member_expelled",
    ),
    duration_s=30.0,
)
"""Long enough for a member to be expelled three times."""

PAUSED_MEMBER = Scenario(
    name="paused-member",
    about="SIGSTOP of a group member beyond its session; it commits once more in its old "
    "generation, which must be rejected",
    suites=("groups",),
    cluster=cluster(),
    workload=load(zombie_commits="true"),
    faults=(fault("pause_client", "member", 5, 9),),
    guarantees=(*REPLICATION, *OWNERSHIP, *POSITIONS, "zombie_commit"),
    duration_s=22.0,
)

SLOW_POLL = Scenario(
    name="slow-poll",
    about="a member heartbeats but does not poll for twice max.poll.interval.ms: the group "
    "continues without it",
    suites=("groups",),
    cluster=cluster(),
    workload=load(max_poll_interval_ms="4000"),
    faults=(fault("slow_poll", "member", 5, 8),),
    guarantees=(*REPLICATION, *OWNERSHIP, *POSITIONS),
    duration_s=20.0,
)

REBALANCE_STORM = Scenario(
    name="rebalance-storm",
    about="members join and leave in turn: eager rebalances, one after another",
    suites=("groups",),
    cluster=cluster(),
    workload=load(2),
    faults=(fault("rebalance_storm", "members", 5, 10),),
    guarantees=(*REPLICATION, *OWNERSHIP, *POSITIONS),
    duration_s=22.0,
)

MEMBERS_LEAVE = Scenario(
    name="members-leave",
    about="members with sessions of 20 s join and leave now and then: others get at once the "
    "partitions of a member that leaves",
    suites=("groups",),
    cluster=cluster(),
    workload=load(2, session_timeout_ms="20000"),
    faults=(fault("rebalance_storm", "members", 4, 14, every_ms=2_500),),
    guarantees=(*REPLICATION, *OWNERSHIP, *POSITIONS, "departed_member_kept"),
    duration_s=32.0,
)

PASSERS_BY = Scenario(
    name="passers-by",
    about="clients begin to join a group, get their member ids, and never return; then a member "
    "is killed: the others wait for none of them longer than a session lasts",
    suites=("groups",),
    cluster=cluster(),
    workload=load(passers_by="3"),
    faults=(fault("kill_client", "member", 9, 12),),
    guarantees=(*REPLICATION, *OWNERSHIP, *POSITIONS),
    duration_s=26.0,
)

COOPERATIVE_STORM = Scenario(
    name="cooperative-storm",
    about="members join and leave in turn: cooperative rebalances, in which members keep the "
    "partitions that do not move",
    suites=("groups",),
    cluster=cluster(),
    workload=load(2, assignor="cooperative"),
    faults=(fault("rebalance_storm", "members", 5, 10),),
    guarantees=(*REPLICATION, *OWNERSHIP, *POSITIONS),
    duration_s=22.0,
)

ZOMBIE_COMMITS = Scenario(
    name="zombie-commits",
    about="members join and leave, and after every rebalance each commits in its old generation: "
    "such commits must be rejected",
    suites=("groups",),
    cluster=cluster(),
    workload=load(2, zombie_commits="true"),
    faults=(fault("rebalance_storm", "members", 5, 8),),
    guarantees=(*OWNERSHIP, *POSITIONS, "zombie_commit"),
    duration_s=20.0,
)

STATIC_MEMBERS = Scenario(
    name="static-members",
    about="a static member is killed and back within its session, then another session replaces a "
    "live one while their coordinator dies; then a member is killed again: returning members keep "
    "their partitions, replaced ones are rejected",
    suites=("groups",),
    cluster=cluster(),
    workload=load(static="1", session_timeout_ms="15000"),
    faults=(
        fault("kill_client", "member", 5, 2),
        fault("second_session", "member", 12, 13),
        fault("crash", "coordinator", 17, 5),
        fault("kill_client", "member", 27, 2),
    ),
    guarantees=(*REPLICATION, *OWNERSHIP, *POSITIONS, "zombie_commit", "static_member_rebalanced"),
    duration_s=38.0,
)
"""The coordinator dies together with the replaced member: its successor must know the member, and
return to the restarted one the offsets that its predecessor had stored."""

CUT_COORDINATOR = Scenario(
    name="cut-coordinator",
    about="the coordinator's followers get no answers; all members die, then the coordinator: no "
    "acknowledged offset is lost",
    suites=("groups",),
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=load(),
    faults=(
        fault(
            "partition", "followers->leader", 5, 10, answers_only=True,
            topic=OFFSETS, partition=PARTITION,
        ),
        fault("kill_client", "members", 7, 6),
        fault("crash", "leader", 7.5, 8, topic=OFFSETS, partition=PARTITION),
    ),
    guarantees=("two_owners", *POSITIONS),
    duration_s=24.0,
)  # fmt: skip

LOST_GENERATIONS = Scenario(
    name="lost-generations",
    about="the coordinator's followers get no answers while the only member of a group joins it "
    "again and again; then the coordinator dies: no member may get a generation that no other "
    "broker has",
    suites=("groups",),
    cluster=cluster(replica_lag_time_max_ms="15000"),
    workload=load(zombie_offsets="60"),
    faults=(
        fault(
            "partition", "followers->leader", 5, 9, answers_only=True,
            topic=OFFSETS, partition=ZOMBIE_PARTITION,
        ),
        fault("crash", "leader", 9, 6, topic=OFFSETS, partition=ZOMBIE_PARTITION),
    ),
    guarantees=("two_owners", "zombie_commit", "generation_went_back"),
    duration_s=22.0,
)  # fmt: skip

COORDINATOR_CRASH = Scenario(
    name="coordinator-crash",
    about="a group's coordinator dies, then the next one: members continue where they were, in "
    "later generations",
    suites=("groups",),
    cluster=cluster(),
    workload=load(),
    faults=(
        fault("crash", "coordinator", 5, 5),
        fault("rebalance_storm", "members", 13, 4),
        fault("crash", "coordinator", 19, 4),
    ),
    guarantees=(*REPLICATION, *OWNERSHIP, *POSITIONS, "generation_went_back", "member_expelled"),
    duration_s=26.0,
)

COORDINATOR_MOVES = Scenario(
    name="coordinator-moves",
    about="another live broker becomes a group's coordinator, and gives it back, twice; a member "
    "dies in between: the new one has the old one's state",
    suites=("groups",),
    cluster=cluster(),
    workload=load(),
    faults=(
        fault("elect_preferred", "topic", 5, 5, topic=OFFSETS),
        fault("kill_client", "member", 6, 2),
        fault("elect_preferred", "topic", 16, 3, topic=OFFSETS),
    ),
    guarantees=(*OWNERSHIP, *POSITIONS, "generation_went_back"),
    duration_s=24.0,
)

POSITIONS_TOPIC = TopicSpec(
    name="urteil-positions", partitions=12, config={"min.insync.replicas": "2"}
)
"""Enough offsets to reveal a new coordinator that loads one in ten wrongly."""

REGISTERS = Scenario(
    name="committed-registers",
    about="four clients commit and fetch offsets of two groups without members, another one "
    "deletes offsets and groups; their coordinator dies, its followers are slow, and it is cut "
    "off: offsets are registers",
    suites=("groups",),
    cluster=cluster(),
    workload=WorkloadSpec(
        kind="commits",
        topics=(DURABLE, POSITIONS_TOPIC),
        consumers=4,
        rate_records_per_s=100,
        options={"deletions": "1"},
    ),
    faults=(
        fault("crash", "coordinator", 12, 6),
        fault("latency", "followers->leader", 21, 5,
              latency_ms=300, topic=OFFSETS, partition=PARTITION),
        fault("kill_client", "committer", 23, 2),
        fault("partition", "followers->leader", 28, 8,
              answers_only=True, topic=OFFSETS, partition=PARTITION),
    ),
    guarantees=POSITIONS,
    duration_s=40.0,
)  # fmt: skip
"""The cut outlasts the followers' time in the ISR: commits fail after they were written. Deleted
offsets are deleted on every follower long before the crash."""

POSITIONS_EXPIRE = Scenario(
    name="positions-expire",
    about="groups without members commit offsets with a retention of ten seconds, and others "
    "without; so does a live member; a coordinator dies: offsets stay that long, and no longer",
    suites=("groups",),
    cluster=cluster(offsets_retention_check_interval_ms="1000"),
    workload=WorkloadSpec(
        kind="commits",
        topics=(DURABLE, POSITIONS_TOPIC),
        consumers=2,
        rate_records_per_s=100,
        options={"brief_ms": "10000"},
    ),
    faults=(fault("crash", "coordinator", 5, 3),),
    guarantees=POSITIONS,
    duration_s=36.0,
)
"""The offsets that are committed in the first seconds expire under a coordinator that loaded them
from the log."""
