"""Administration that the cluster accepted is finished once nothing prevents it.

A reassignment ends with the replicas where they were requested, and a deleted topic disappears.
Judged in intervals in which every broker was present and no fault acted, from the last change of
a broker or controller on (`derived/admin_tasks.py`). A deletion may take 30 s, and so may a move
whose replicas are all in sync; other moves have the scenario's deadline. A request without any
visible effect within 30 s is `not done`. Moves that were not acknowledged are not judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Occasion
from urteil.harness.verify.guarantees.tasks import task_guarantee


def _explain(row: Mapping[str, Any]) -> str:
    long = f"{row['recovery_s']:.0f} s after nothing prevented it any more"
    if row["sub_kind"] == "not done":
        long = f"{row['recovery_s']:.0f} s later, although nothing prevented it"
    return f"An administrator requested {row['task']}, but {row['shortfall']}, {long}."


GUARANTEE = task_guarantee(
    name="unfinished_administration",
    rank=60,
    about="requested administration was not finished although nothing prevented it",
    promise="A reassignment continues across controllers until its target replicas are in place, "
    "and a topic marked for deletion is deleted.",
    source="Kafka documentation, 6.1 Basic Kafka Operations; KIP-455",
    sub_kinds={
        "not moved": (
            "replicas are not where a reassignment, or its cancellation, puts them, 30 s after "
            "all of them were in sync, or after the scenario's deadline if one is not"
        ),
        "not deleted": "a deleted topic exists 30 s after nothing prevented its deletion any more",
        "not done": "an accepted request of an administrator shows no effect for 30 s",
    },
    not_counted=(
        "Administration where a broker is away at the end, a disk was damaged, a fault was not "
        "healed, or a reassignment was not acknowledged. It waits from the last coming or going "
        "of a broker or controller on.",
    ),
    occasion=Occasion.ADMINISTRATION,
    explain=_explain,
)
