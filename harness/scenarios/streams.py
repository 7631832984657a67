"""Applications of Kafka Streams, killed with the brokers that coordinate them."""

from __future__ import annotations

from urteil.harness.clients.applications.streams_application import first_transactional_id
from urteil.harness.scenario import Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import REPLICATION, cluster, fault

SAFE = {"min.insync.replicas": "2"}
GROUP = "urteil-group"
FAULTS = (
    fault("kill_client", "app_leader", 5, 3),
    fault("crash", "coordinator", 12, 4, group=GROUP),
    fault("empty_app_state", "app", 20, 3),
    fault("crash", "coordinator", 27, 4, transactional_id=first_transactional_id(GROUP, "a1")),
    fault("kill_client", "apps", 34, 2),
    fault("partition", "follower->leader", 39, 4),
)


def _scenario(name: str, about: str, *, topics: int = 1, rate: float = 100) -> Scenario:
    names = ("urteil", "urteil-right")[:topics]
    return Scenario(
        name=name,
        about=f"{about}; an instance, all instances, coordinators and a store are lost",
        suites=("applications",),
        cluster=cluster(),
        workload=WorkloadSpec(
            kind="application",
            topics=tuple(TopicSpec(name=name, config=SAFE) for name in names),
            rate_records_per_s=rate,
            isolation="read_committed",
            options={"application": name},
        ),
        faults=FAULTS,
        guarantees=(*REPLICATION, "wrong_result"),
        duration_s=46.0,
    )


SMOKE = _scenario(
    "streams-smoke",
    "StreamsSmokeTest of Apache Kafka verifies what Kafka Streams computes",
    rate=20,
)
"""The lab's own producers write beside it, so that its brokers are judged as all others are."""

COUNT = _scenario("streams-count", "Kafka Streams counts words over a repartition topic")
JOIN = _scenario("streams-join", "Kafka Streams joins two topics in a window", topics=2, rate=80)
WINDOWS = _scenario("streams-windows", "Kafka Streams writes final counts of windows")
