"""A broker that shuts down cleanly leads no partition that another in-sync replica could lead.

Judged where a fault stopped the broker by SIGTERM, no other fault acted, and no other broker or
controller came or went in the 5 s before: a controlled shutdown gives up after some attempts
(`derived/handover.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Guarantee
from urteil.harness.verify.guarantees.tasks import TASK_TABLES, count_tasks, overdue_tasks


def _explain(row: Mapping[str, Any]) -> str:
    return f"{row['asked']}, but {row['stands']}."


GUARANTEE = Guarantee(
    name="leadership_not_handed_over",
    rank=60,
    split_from="slow_recovery",
    about="a broker that shut down cleanly still led a partition",
    promise="A broker that is stopped gracefully hands its partitions to other replicas first.",
    source="Kafka documentation, 6.1 Basic Kafka Operations: Graceful shutdown",
    sub_kinds={
        "not handed over": (
            "a broker that shut down cleanly still led a partition that others in sync could have "
            "led"
        ),
    },
    not_counted=(
        "Shutdowns where another fault acts, or where another broker or a controller came or went "
        "in the 5 s before.",
    ),
    opportunities=count_tasks("not handed over"),
    violations=overdue_tasks("not handed over"),
    explain=_explain,
    tie="finding.asked",
    compares_times=True,
    host_load_excuses=True,
    needs=("states",),
    reads=("cluster_tasks",),
    subjects=("cluster_tasks.not handed over",),
    rests_on=TASK_TABLES,
    no_reference=DERIVED,
)
