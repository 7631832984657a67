"""The demo for new users, and the control run without any fault."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

DEMO = Scenario(
    name="demo",
    about="a leader crash, a one-way partition of a follower and 200 ms latency under 30 s of load",
    suites=("delivery",),
    cluster=cluster(),
    workload=WorkloadSpec(topics=(DURABLE,)),
    faults=(
        fault("latency", "all", 4, 4, latency_ms=200, jitter_ms=20),
        fault("crash", "leader", 10, 6),
        fault("partition", "follower->leader", 21, 5),
    ),
    duration_s=30.0,
    guarantees=(*REPLICATION, "duplicate"),
)

CALM = Scenario(
    name="calm",
    about="no fault at all: the control",
    suites=("delivery",),
    cluster=cluster(),
    workload=WorkloadSpec(topics=(DURABLE,)),
    duration_s=8.0,
    guarantees=(*REPLICATION, "duplicate"),
)
