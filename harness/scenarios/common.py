"""Topics, guarantees and short forms of faults that most scenarios share."""

from __future__ import annotations

from urteil.harness.scenario import ClusterSpec, FaultSpec, TopicSpec, WorkloadSpec

DURABLE = TopicSpec(config={"min.insync.replicas": "2"})
SOLE = TopicSpec(replication_factor=1, config={"min.insync.replicas": "1"})
LAX = TopicSpec(config={"min.insync.replicas": "1"})
SENT_AGAIN = {"repeated_rounds": "400", "repeated_every_ms": "50"}
"""Options: an extra client resends batches repeatedly."""

IMPATIENT = WorkloadSpec(
    topics=(DURABLE,), idempotent=False, delivery_timeout_ms=2_000, request_timeout_ms=1_000
)
"""Requests time out within a fault, so that rejections are outcomes and not only delays."""
DELIVERY = ("lost_write", "phantom", "inconsistent_offset")
REPLICATION = (*DELIVERY, "replica_divergence")


def cluster(**config: str) -> ClusterSpec:
    """Three brokers and one ZooKeeper; underscores in names become dots. Unnamed settings have the
    lab's defaults (session and replica lag of 3 s)."""
    return ClusterSpec(config={k.replace("_", "."): v for k, v in config.items()})


def fault(
    name: str, target: str, at_s: float, duration_s: float, **options: str | float | bool
) -> FaultSpec:
    """A `FaultSpec` in one line."""
    return FaultSpec(
        fault=name, target=target, at_s=at_s, duration_s=duration_s, options=dict(options)
    )
