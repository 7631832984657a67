"""A partition has a leader while an eligible replica lives.

Eligible are the members of the last ISR, or all replicas while unclean elections are enabled.
Judged is the longest time in which one eligible broker lived under one controller and no fault
acted on them (`derived/leaderless_partitions.py`); 15 s are enough for an election.

A controller elects the leaders of all partitions that lost the same leader together. If it has
elected some of them, 3 s are enough for the others. The state of a partition that the controller
forgot still names the broker that left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.tasks import task_guarantee


def _explain(row: Mapping[str, Any]) -> str:
    lasted_s = row["recovery_s"]
    return f"{row['task']}, but {row['shortfall']}, for {lasted_s:.0f} s."


GUARANTEE = task_guarantee(
    name="leaderless_partition",
    rank=70,
    about="a partition had no leader although an eligible replica lived",
    promise="A partition without a leader gets one as soon as a member of its in-sync set is "
    "back, or unclean elections are enabled.",
    source="Kafka documentation, 4.7 Replication: Unclean leader election; "
    "unclean.leader.election.enable",
    sub_kinds={
        "leaderless": (
            "a partition had no leader for 15 s, though one replica lived so long under one "
            "controller and was in sync, or unclean elections were allowed. Only crashes and "
            "shutdowns of others acted meanwhile"
        ),
        "passed over": (
            "a partition whose leader left had none for 3 s after other partitions of that leader "
            "had another one, though a member of its ISR lived so long under one controller. Only "
            "crashes and shutdowns of others acted meanwhile"
        ),
    },
    not_counted=("After a fault of a disk, partitions that were passed over.",),
    not_required="each partition may have a leader all the time",
    explain=_explain,
)
