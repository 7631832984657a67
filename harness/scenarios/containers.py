"""Faults that need containers: an unplugged network, resource limits. Runtime `docker` only."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

LOAD = WorkloadSpec(topics=(DURABLE,))
ELECTIONS = ("unclean_leader", "epoch_went_back")

UNPLUG_LEADER = Scenario(
    name="unplug-leader",
    about="the network is taken from a leader's container beyond its session, then given back",
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("unplug", "leader", 5, 10),),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
    runtime="docker",
)

STARVED_LEADER = Scenario(
    name="starved-leader",
    about="a leader's container gets a twentieth of a processor: everything is late, and its "
    "session is in danger",
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("limit", "leader", 5, 10, cpus=0.05),),
    guarantees=(*REPLICATION, "duplicate", *ELECTIONS),
    runtime="docker",
)
