"""A replica that is in sync stays in sync while every broker runs and no fault acts.

The aftereffects of a fault may appear long after its healing. A partition that lacked in-sync
replicas throughout the interval belongs to `slow_recovery`; topics whose replicas were moved are
not judged, because new replicas have to catch up (`derived/isr_shrinks.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.tasks import task_guarantee


def _explain(row: Mapping[str, Any]) -> str:
    return f"{row['task']}, then {row['shortfall']}, for {row['recovery_s']:.0f} s."


GUARANTEE = task_guarantee(
    name="shrunken_isr",
    rank=50,
    about="replicas left the ISR and stayed outside although no fault acted",
    promise="A replica leaves the in-sync set when it stops or lags by replica.lag.time.max.ms, "
    "and joins it again when it has caught up.",
    source="Kafka documentation, 4.7 Replication",
    sub_kinds={
        "fell out": (
            "replicas that had been in sync were not at the end, for longer than the scenario's "
            "deadline, though every broker ran and no fault acted"
        ),
    },
    not_counted=("Topics while their replicas are being moved.",),
    explain=_explain,
)
