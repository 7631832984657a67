"""Third-party applications over the cluster, with their own crashes and those of brokers."""

from __future__ import annotations

from urteil.harness.scenario import FaultSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import REPLICATION, cluster, fault

SAFE = {"min.insync.replicas": "2"}
SUITES = ("applications",)
INPUT = TopicSpec(name="urteil", config=SAFE)
COPIES = TopicSpec(name="urteil-out", config=SAFE, copies=True)


def load(
    application: str, *topics: TopicSpec, rate: float = 100, producers: int = 2, keys: int = 50
) -> WorkloadSpec:
    """Producers into the inputs of an application, and readers of committed records."""
    return WorkloadSpec(
        kind="application",
        topics=topics,
        producers=producers,
        keys=keys,
        rate_records_per_s=rate,
        isolation="read_committed",
        options={"application": application},
    )


KILLED_AND_CUT: tuple[FaultSpec, ...] = (
    fault("kill_client", "app", 6, 2),
    fault("crash", "leader", 22, 5),
    fault("partition", "leader<->follower", 32, 6),
)
"""The application dies once with its state on disk; then a broker crashes, and one is cut off."""

SPARK_STREAMING = Scenario(
    name="spark-streaming",
    about="Spark Structured Streaming writes every record once to files and counts by key into a "
    "topic; it is killed, a broker crashes, another is cut off",
    suites=SUITES,
    cluster=cluster(),
    workload=load("spark-streaming", INPUT),
    faults=KILLED_AND_CUT,
    guarantees=(*REPLICATION, "wrong_result"),
    duration_s=42.0,
)

FLINK_SQL = Scenario(
    name="flink-sql",
    about="Flink SQL copies a topic exactly once; its cluster is killed and continues from its "
    "newest checkpoint, a broker crashes, another is cut off",
    suites=SUITES,
    cluster=cluster(),
    workload=load("flink-sql", INPUT, COPIES),
    faults=KILLED_AND_CUT,
    guarantees=(*REPLICATION, "unprocessed", "processed_twice", "reordered_copy"),
    duration_s=42.0,
)

SCHEMA_REGISTRY = Scenario(
    name="schema-registry",
    about="Avro by schema id over Apicurio Registry, with a new schema again and again; the "
    "registry, the producer and the consumer are killed, a broker crashes, another is cut off",
    suites=SUITES,
    cluster=cluster(),
    workload=load("schema-registry", INPUT, COPIES),
    faults=(
        fault("kill_client", "service", 5, 2),
        fault("kill_client", "app", 16, 2),
        fault("crash", "leader", 23, 5),
        fault("partition", "leader<->follower", 32, 6),
    ),
    guarantees=(*REPLICATION, "unprocessed", "wrong_result"),
    duration_s=42.0,
)
