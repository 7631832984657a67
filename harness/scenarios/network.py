"""Links that work badly: narrow, sliced, slow to close, reset, cut off, flapping."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

LOAD = WorkloadSpec(topics=(DURABLE,))

NARROW_LINKS = Scenario(
    name="narrow-links",
    about="followers fetch from their leader at 15 KB/s, less than is written: they fall behind "
    "and catch up",
    suites=("network",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("bandwidth", "followers->leader", 5, 9, rate_kb_per_s=15),),
    guarantees=(*REPLICATION, "duplicate"),
    duration_s=20.0,
)

ROUGH_LINKS = Scenario(
    name="rough-links",
    about="requests and answers arrive in small pieces, connections close a second late, and a "
    "follower is killed: framing and reconnection",
    suites=("network",),
    cluster=cluster(),
    workload=LOAD,
    faults=(
        fault("slices", "all", 5, 9, clients=True),
        fault("slow_close", "leader", 6, 8, clients=True, delay_ms=1000),
        fault("crash", "follower", 9, 4),
    ),
    guarantees=(*REPLICATION, "duplicate"),
    duration_s=20.0,
)

RESETS = Scenario(
    name="resets",
    about="acknowledgements reset their connections, then followers' fetches do: repeated sends "
    "are deduplicated",
    suites=("network",),
    cluster=cluster(),
    workload=LOAD,
    faults=(
        fault("reset", "client->leader", 5, 5, answers_only=True),
        fault("reset", "followers->leader", 14, 5),
    ),
    guarantees=(*REPLICATION, "duplicate"),
    duration_s=24.0,
)

CUT_REQUESTS = Scenario(
    name="cut-requests",
    about="connections end inside a producer's request, then inside an answer to a fetch: half a "
    "request is not a request",
    suites=("network",),
    cluster=cluster(),
    workload=LOAD,
    faults=(
        fault("cut_after", "client->leader", 5, 6, bytes=5013),
        fault("cut_after", "followers->leader", 14, 6, answers_only=True, bytes=5013),
    ),
    guarantees=(*REPLICATION, "duplicate"),
    duration_s=24.0,
)

FLAPPING_LINKS = Scenario(
    name="flapping-links",
    about="the links between a leader and its followers fail and return about every second: the "
    "ISR shrinks and grows",
    suites=("network",),
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("flapping", "followers<->leader", 5, 12, highest_ms=3500),),
    guarantees=(*REPLICATION, "duplicate"),
    duration_s=23.0,
)
