"""Failures of ZooKeeper: crashes, silence, lost sessions, and changes by hand."""

from __future__ import annotations

from urteil.harness.scenario import ClusterSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

LOAD = WorkloadSpec(topics=(DURABLE,))
PATIENT = WorkloadSpec(topics=(DURABLE,), delivery_timeout_ms=60_000)
ENSEMBLE = ClusterSpec(zookeepers=3)
ELECTIONS = ("unclean_leader", "epoch_went_back", "two_leaders")

ZOOKEEPER_LEADER = Scenario(
    name="zookeeper-leader",
    about="the leader of three ZooKeepers dies, then a broker: sessions move, elections continue",
    suites=("zookeeper",),
    cluster=ENSEMBLE,
    workload=LOAD,
    faults=(fault("crash", "zookeeper_leader", 5, 12), fault("crash", "leader", 9, 8)),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
)

ZOOKEEPER_QUORUM = Scenario(
    name="zookeeper-quorum",
    about="two of three ZooKeepers die beyond every session's timeout, and return",
    suites=("zookeeper",),
    cluster=ENSEMBLE,
    workload=PATIENT,
    faults=(fault("crash", "zookeeper_majority", 5, 8),),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
    recovery_deadline_s=60.0,
)

ZOOKEEPER_PAUSE = Scenario(
    name="zookeeper-pause",
    about="ZooKeeper stands still beyond every session's timeout, then a broker dies",
    suites=("zookeeper",),
    cluster=cluster(),
    workload=PATIENT,
    faults=(fault("pause", "zookeeper", 5, 7), fault("crash", "leader", 18, 7)),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
    duration_s=30.0,
    recovery_deadline_s=60.0,
)

SESSION_EXPIRED = Scenario(
    name="session-expired",
    about="a leader's session expires, then the controller's, then a broker dies: registration, "
    "controllership and watches are renewed",
    suites=("zookeeper",),
    cluster=cluster(),
    workload=LOAD,
    faults=(
        fault("session_expired", "leader", 4, 1),
        fault("session_expired", "controller", 10, 1),
        fault("crash", "leader", 17, 8),
    ),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS, "unexpected_exit"),
    duration_s=30.0,
)

SESSIONS_EXPIRED = Scenario(
    name="sessions-expired",
    about="the sessions of all brokers expire at once: they register again, and work continues",
    suites=("zookeeper",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("session_expired", "all", 5, 14),),
    guarantees=(
        *REPLICATION,
        "duplicate",
        "epoch_went_back",
        "no_progress",
        "slow_recovery",
        "unclean_leader",
    ),
    survives=True,
)

ANSWER_LOST = Scenario(
    name="zookeeper-answer-lost",
    about="the controller's ZooKeeper connection is cut inside answers while ISRs change: it "
    "finds a write that was applied and not answered",
    suites=("zookeeper",),
    cluster=cluster(),
    workload=LOAD,
    faults=(
        fault("crash", "straggler", 4, 10),
        fault("cut_after", "controller->zookeeper", 6.5, 2, bytes=150, answers_only=True),
        fault("cut_after", "controller->zookeeper", 14.5, 2, bytes=200, answers_only=True),
    ),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS, "slow_recovery"),
)
"""A multi that was applied and whose answer was lost: the writer may receive BADVERSION for its own
write."""

CONTROLLER_DELETED = Scenario(
    name="controller-deleted",
    about="/controller is deleted by hand twice, then a leader dies: epochs fence the former "
    "controller",
    suites=("zookeeper",),
    cluster=cluster(),
    workload=LOAD,
    faults=(
        fault("controller_deleted", "controller", 4, 1),
        fault("controller_deleted", "controller", 8, 1),
        fault("crash", "leader", 12, 8),
    ),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
)
