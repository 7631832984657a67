"""A broker without a session is not in sync.

Judged at each election after a leader whose registration in ZooKeeper was gone: the next ISR must
not contain the former leader. The controller that removes it by the next epoch is not late
(`derived/former_leaders.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Guarantee
from urteil.harness.verify.guarantees.tasks import TASK_TABLES, count_tasks, overdue_tasks


def _explain(row: Mapping[str, Any]) -> str:
    return f"{row['asked']}, but {row['stands']}."


GUARANTEE = Guarantee(
    name="dead_replica_in_isr",
    rank=60,
    split_from="slow_recovery",
    about="a stopped former leader was still in the ISR",
    promise="Brokers without a session are not in sync.",
    source="Kafka documentation, 4.7 Replication: a node must maintain its session",
    sub_kinds={
        "kept in sync": (
            "a leader had left, by ZooKeeper's order, and another was elected; the ISR still had "
            "the first one until the new leader removed it"
        ),
    },
    opportunities=count_tasks("kept in sync"),
    violations=overdue_tasks("kept in sync"),
    explain=_explain,
    tie="finding.asked",
    compares_times=True,
    host_load_excuses=True,
    needs=("states",),
    reads=("cluster_tasks",),
    subjects=("cluster_tasks.kept in sync",),
    rests_on=TASK_TABLES,
    no_reference=DERIVED,
)
