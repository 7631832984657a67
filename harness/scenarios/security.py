"""Access rights and passwords that change while brokers die."""

from __future__ import annotations

import msgspec

from urteil.harness.scenario import ClusterSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, fault

LOAD = WorkloadSpec(topics=(DURABLE,))
USERS = ClusterSpec(users=True)
GUARDED = (*REPLICATION, "unauthorised")

RIGHTS = Scenario(
    name="rights",
    about="ACLs and passwords change at any broker under load; one user never gets a right",
    suites=("security",),
    cluster=USERS,
    workload=LOAD,
    guarantees=GUARDED,
    duration_s=18.0,
)

RIGHTS_CRASH = Scenario(
    name="rights-crash",
    about="ACLs and passwords change while a leader and then the controller die and return: a "
    "returned broker knows the present rights",
    suites=("security",),
    cluster=USERS,
    workload=LOAD,
    faults=(fault("crash", "leader", 4, 4), fault("crash", "controller", 12, 4)),
    guarantees=GUARDED,
    duration_s=22.0,
)

RIGHTS_CUT_OFF = Scenario(
    name="rights-cut-off",
    about="ACLs and passwords change while a follower and then the controller cannot reach "
    "ZooKeeper; then all sessions end: brokers learn the changes late, but they do",
    suites=("security",),
    cluster=msgspec.structs.replace(USERS, config={"zookeeper.session.timeout.ms": "6000"}),
    workload=LOAD,
    faults=(
        fault("broker_from_zookeeper", "follower", 4, 3),
        fault("broker_from_zookeeper", "controller", 11, 3),
        fault("session_expired", "all", 17, 1),
    ),
    guarantees=GUARDED,
    duration_s=32.0,
)
