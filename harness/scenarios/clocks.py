"""Wall clocks that jump or run at a wrong rate. Brokers should use monotonic clocks."""

from __future__ import annotations

from urteil.harness.scenario import ClusterSpec, Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, fault

LOAD = WorkloadSpec(topics=(DURABLE,))
CLOCKS = ClusterSpec(own_clocks=True)

CLOCK_JUMPS = Scenario(
    name="clock-jumps",
    about="a leader's clock jumps 300 s ahead, another's 300 s back, then that leader dies: only "
    "timestamps depend on wall clocks",
    suites=("zookeeper",),
    cluster=CLOCKS,
    workload=LOAD,
    faults=(
        fault("clock_shift", "leader", 4, 7, offset_s=300),
        fault("clock_shift", "leader", 15, 12, offset_s=-300),
        fault("crash", "leader", 21, 6),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "epoch_went_back"),
    duration_s=32.0,
)

CLOCK_DRIFT = Scenario(
    name="clock-drift",
    about="the clocks of two brokers drift apart by half a second each second",
    suites=("zookeeper",),
    cluster=CLOCKS,
    workload=LOAD,
    faults=(
        fault("clock_drift", "leader", 4, 12, rate=1.5),
        fault("clock_drift", "successor", 4.5, 11.5, rate=0.5),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "epoch_went_back"),
)

CLOCK_BACK = Scenario(
    name="clock-back",
    about="a leader's clock jumps 300 s back, then a follower does not reach it: the follower "
    "leaves the ISR as soon as ever, and work continues",
    suites=("zookeeper",),
    cluster=CLOCKS,
    workload=LOAD,
    faults=(
        fault("clock_shift", "leader", 4, 22, offset_s=-300),
        fault("partition", "successor->leader", 7, 17),
    ),
    guarantees=(*REPLICATION, "duplicate", "unclean_leader", "stalled_partition"),
    duration_s=28.0,
)
