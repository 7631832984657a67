"""A broker without a session is not in sync.

Judged at each election after a leader whose registration in ZooKeeper was gone: the next ISR must
not contain the former leader. The controller that removes it by the next epoch is not late
(`derived/former_leaders.py`)."""

from __future__ import annotations

from urteil.harness.verify.guarantees.tasks import task_guarantee

GUARANTEE = task_guarantee(
    name="dead_replica_in_isr",
    rank=60,
    about="a stopped former leader was still in the ISR",
    promise="Brokers without a session are not in sync.",
    source="Kafka documentation, 4.7 Replication: a node must maintain its session",
    sub_kinds={
        "kept in sync": (
            "a leader had left, by ZooKeeper's order, and another was elected; the ISR still had "
            "the first one until the new leader removed it"
        ),
    },
)
