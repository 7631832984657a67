"""Share groups (KIP-932): members and brokers that die, locks that run out, cut links.

The brokers permit short locks and sessions, and the share coordinator has one partition, whose
leader is the coordinator of every group.
"""

from __future__ import annotations

from urteil.harness.scenario import FaultSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import REPLICATION, cluster, fault
from urteil.harness.scenarios.quorum import TARGET

STATE = "__share_group_state"
SHARED = TopicSpec(partitions=2, config={"min.insync.replicas": "2"})
SHARE = ("settled_redelivered", "unsettled_record", "two_holders", "delivery_over_limit")
SHARING = cluster(
    group_share_delivery_count_limit="10",
    group_share_min_record_lock_duration_ms="1000",
    group_share_session_timeout_ms="6000",
    group_share_min_session_timeout_ms="6000",
    group_share_heartbeat_interval_ms="1000",
    group_share_min_heartbeat_interval_ms="1000",
    share_coordinator_state_topic_num_partitions="1",
)


def load(**options: str) -> WorkloadSpec:
    """Four members, so that each partition has two."""
    return WorkloadSpec(
        kind="share",
        topics=(SHARED,),
        consumers=4,
        rate_records_per_s=200,
        options={"lock_ms": "4000", "max_poll_records": "20", **options},
    )


def share_scenario(
    *,
    name: str,
    about: str,
    faults: tuple[FaultSpec, ...],
    workload: WorkloadSpec | None = None,
    duration_s: float = 22.0,
) -> Scenario:
    """A scenario of the suite: one share group, which keeps its guarantees."""
    return Scenario(
        name=name,
        about=about,
        suites=("share",),
        cluster=SHARING,
        workload=workload or load(),
        faults=faults,
        guarantees=(*REPLICATION, *SHARE),
        duration_s=duration_s,
        target=TARGET,
    )


SHARE_LATE = share_scenario(
    name="share-late-acknowledgements",
    about="members hold some records until their locks have run out, and acknowledge them then: "
    "another member has them next, and nothing is skipped",
    workload=load(late_acknowledgements="0.05", releases="0.2"),
    faults=(),
)

SHARE_MEMBERS_KILLED = share_scenario(
    name="share-members-killed",
    about="members die with records that they have acquired, one after another, then all at once",
    workload=load(late_acknowledgements="0.05"),
    faults=(
        fault("kill_client", "share_member", 4, 4),
        fault("kill_client", "share_member", 9, 3),
        fault("kill_client", "share_members", 14, 3),
    ),
)

SHARE_COORDINATOR_CRASH = share_scenario(
    name="share-coordinator-crash",
    about="the broker that stores the state of share groups dies, twice: what was accepted stays "
    "so",
    faults=(
        fault("crash", "leader", 5, 6, topic=STATE, partition=0),
        fault("crash", "leader", 15, 5, topic=STATE, partition=0),
    ),
    duration_s=26.0,
)

SHARE_LEADER_CRASH = share_scenario(
    name="share-leader-crash",
    about="the leader of a shared partition dies with the locks that it has given, twice; a member "
    "dies in between",
    workload=load(late_acknowledgements="0.05"),
    faults=(
        fault("crash", "leader", 4, 6),
        fault("kill_client", "share_member", 12, 2),
        fault("crash", "leader", 15, 5),
    ),
    duration_s=26.0,
)

SHARE_LEADER_CUT = share_scenario(
    name="share-leader-cut",
    about="the leader of a shared partition is cut off from clients, then from all brokers: "
    "members hold records that it cannot take back",
    faults=(
        fault("partition", "client<->leader", 4, 6),
        fault("isolate", "leader", 14, 7),
    ),
    duration_s=26.0,
)
