"""Who may do what, while rights and passwords change and brokers die."""

from __future__ import annotations

import msgspec

from urteil.harness.scenario import ClusterSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, fault

LOAD = WorkloadSpec(topics=(DURABLE,))
USERS = ClusterSpec(users=True)
GUARDED = (*REPLICATION, "unauthorised")

RIGHTS = Scenario(
    name="rights",
    about="ACLs and passwords change under load; one user is never granted anything",
    suites=("security",),
    cluster=USERS,
    workload=LOAD,
    guarantees=GUARDED,
    duration_s=18.0,
)

RIGHTS_CRASH = Scenario(
    name="rights-crash",
    about="ACLs and passwords change while a broker and then the controller die and come back",
    suites=("security",),
    cluster=USERS,
    workload=LOAD,
    faults=(fault("crash", "leader", 4, 4), fault("crash", "controller", 12, 4)),
    guarantees=GUARDED,
    duration_s=22.0,
)

RIGHTS_CUT_OFF = Scenario(
    name="rights-cut-off",
    about="brokers cannot reach ZooKeeper for a while, and hear of the changes late; then the "
    "sessions of all end, and they go on to hear of them",
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

FAMILY = (RIGHTS, RIGHTS_CRASH, RIGHTS_CUT_OFF)
