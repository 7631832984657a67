"""Transactions: clients that die, sleep or share an id; coordinators that fail in the middle."""

from __future__ import annotations

from urteil.harness.scenario import ClusterSpec, Scenario, TopicSpec, WorkloadSpec
from urteil.harness.scenarios.common import REPLICATION, fault

CLEANUP = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
SAFE = {"min.insync.replicas": "2"}
SOURCE, SINK = TopicSpec(config=SAFE), TopicSpec(name="urteil-out", config=SAFE)
ID = "urteil-group-t1"
"""The transactional id of the first writer."""


def cluster(**config: str) -> ClusterSpec:
    """Three brokers that look for transactions past their timeout every second."""
    return ClusterSpec(config=CLEANUP | {k.replace("_", "."): v for k, v in config.items()})


def load(*, copies: bool = False, **options: str) -> WorkloadSpec:
    """Writers of transactions, and with `copies` a group that copies in transactions."""
    return WorkloadSpec(
        kind="transactions",
        topics=(SOURCE, SINK) if copies else (SOURCE,),
        producers=3,
        rate_records_per_s=150,
        isolation="read_committed",
        options=options,
    )


CALM = Scenario(
    name="transactions",
    about="transactions over several partitions, committed and aborted, while a broker dies",
    cluster=cluster(),
    workload=load(copies=True),
    faults=(fault("crash", "leader", 6, 5),),
    guarantees=REPLICATION,
    duration_s=16.0,
)

FAMILY = (CALM,)
