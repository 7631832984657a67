"""A user's own application between two topics, judged from the outside."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import REPLICATION, cluster, fault

SAFE = {"min.insync.replicas": "2"}

PIPELINE = Scenario(
    name="pipeline",
    about="your own program copies one topic to another (--app); an instance is killed, all at "
    "once, twice, and a broker",
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
    faults=(
        fault("kill_client", "app", 5, 3),
        fault("kill_client", "apps", 12, 2),
        fault("kill_client", "apps", 20, 2),
        fault("crash", "leader", 27, 6),
    ),
    guarantees=(*REPLICATION, "unprocessed"),
    duration_s=38.0,
)
"""An instance may have had no work when it died; later, all of them have, twice."""
