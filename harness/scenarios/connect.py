"""Kafka Connect between topics, files and a database, judged from its outputs."""

from __future__ import annotations

from urteil.harness.scenario import Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import REPLICATION, cluster, fault

SAFE = {"min.insync.replicas": "2"}
INPUT = TopicSpec(name="urteil", config=SAFE)

FILES = Scenario(
    name="connect-files",
    about="Kafka Connect writes a topic into a file and the file into a topic; workers die, their "
    "leader is paused, and the coordinator's broker dies",
    suites=("applications",),
    cluster=cluster(),
    workload=WorkloadSpec(
        kind="application",
        topics=(INPUT, TopicSpec(name="urteil-out", config=SAFE, copies=True)),
        rate_records_per_s=200,
        isolation="read_committed",
        options={"application": "connect-files"},
    ),
    faults=(
        fault("kill_client", "worker", 7, 3),
        fault("operate_app", "app", 20, 1, act="reconfigure-source"),
        fault("kill_client", "workers", 26, 2),
        fault("crash", "coordinator", 38, 6),
        fault("operate_app", "app", 46, 1, act="restart-sink"),
        fault("pause_client", "app_leader", 49, 10),
    ),
    guarantees=(*REPLICATION, "unprocessed", "reordered_copy", "wrong_result"),
    duration_s=64.0,
)
"""The pause outlasts the worker's session: its tasks move, and it continues as a zombie."""

DATABASE = Scenario(
    name="connect-database",
    about="Kafka Connect writes a topic into a table of PostgreSQL; workers, the coordinator's "
    "broker and the database die",
    suites=("applications",),
    cluster=cluster(),
    workload=WorkloadSpec(
        kind="application",
        topics=(INPUT,),
        rate_records_per_s=150,
        options={"application": "connect-database"},
    ),
    faults=(
        fault("kill_client", "worker", 7, 3),
        fault("operate_app", "app", 20, 1, act="reconfigure-sink"),
        fault("kill_client", "workers", 26, 2),
        fault("crash", "coordinator", 38, 6),
        fault("kill_client", "service", 48, 4),
    ),
    guarantees=(*REPLICATION, "wrong_result"),
    duration_s=56.0,
)
