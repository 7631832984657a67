"""An application of somebody's own between two topics, judged from the outside."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import REPLICATION, cluster, fault

SAFE = {"min.insync.replicas": "2"}

PIPELINE = Scenario(
    name="pipeline",
    about="your own program copies one topic to another (--app); it and a broker are killed",
    cluster=cluster(),
    workload=WorkloadSpec(
        kind="pipeline",
        topics=(
            TopicSpec(name="urteil", config=SAFE),
            TopicSpec(name="urteil-out", config=SAFE, copies=True),
        ),
        rate_records_per_s=200,
        isolation="read_committed",
    ),
    faults=(fault("kill_client", "app", 5, 3), fault("crash", "leader", 14, 6)),
    guarantees=(*REPLICATION, "unprocessed"),
    duration_s=24.0,
)

FAMILY = (PIPELINE,)
