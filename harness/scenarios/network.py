"""Links that work, but badly: narrow, in slices, late to close, reset, cut off, flapping."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, WorkloadSpec
from urteil.harness.scenarios.common import DURABLE, REPLICATION, cluster, fault

LOAD = WorkloadSpec(topics=(DURABLE,))

RESETS = Scenario(
    name="resets",
    about="acknowledgements reset their connections, so records are sent twice; then fetches too",
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
    about="connections end in the middle of a request of a producer, then of an answer to a fetch",
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
    about="the links between a leader and its followers go and come back every second or so",
    cluster=cluster(),
    workload=LOAD,
    faults=(fault("flapping", "followers<->leader", 5, 12, highest_ms=3500),),
    guarantees=(*REPLICATION, "duplicate"),
    duration_s=23.0,
)

FAMILY = (
    RESETS,
    CUT_REQUESTS,
    FLAPPING_LINKS,
)
