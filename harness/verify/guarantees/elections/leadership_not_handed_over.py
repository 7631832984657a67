"""A broker that shuts down cleanly leads no partition that another in-sync replica could lead.

Judged if a fault stopped the broker by SIGTERM, no other fault acted, and no other broker or
controller started or stopped in the 5 s before: a controlled shutdown gives up after some attempts
(`derived/handover.py`)."""

from __future__ import annotations

from urteil.harness.verify.guarantees.tasks import task_guarantee

GUARANTEE = task_guarantee(
    name="leadership_not_handed_over",
    rank=60,
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
        "Shutdowns where another fault acts, or where another broker or a controller started or "
        "stopped in the 5 s before.",
    ),
    not_required="each departure may coincide with another",
)
