"""The partitions of a member that left or died are assigned to other members.

Judged while other members of its group were running and no fault acted. `left behind`: after a
departure no member was assigned the partition for half the session timeout, where that is at least
15 s. `kept dead`: after a kill no member was assigned it for the session timeout and 8 s
(`derived/member_departures.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Guarantee, Occasion


def _explain(row: Mapping[str, Any]) -> str:
    lasted_s = f"{float(row['calm_s']):.1f} s"
    if row["sub_kind"] == "left behind":
        return (
            f"{row['client']} left its group, and for {lasted_s} no member was assigned "
            f"{row['topic']}-{row['partition']}, although others were running."
        )
    return (
        f"{row['client']} was killed, and for {lasted_s}, longer than its session timeout and a "
        f"rebalance, no member was assigned {row['topic']}-{row['partition']}, although others "
        "of its group were running."
    )


GUARANTEE = Guarantee(
    name="departed_member_kept",
    rank=90,
    split_from="no_delivery",
    about="a group waited for a member that had left or died",
    promise="A member that leaves, or sends no heartbeats within its session timeout, is removed "
    "from its group, and a rebalance assigns its partitions to the others.",
    source="Kafka documentation, Consumer Configs: session.timeout.ms; KIP-62",
    sub_kinds={
        "left behind": (
            "no member got the partitions of a member that left, for half its session timeout, "
            "where that is 15 s or longer"
        ),
        "kept dead": (
            "no member got the partitions of a killed member for its session timeout and 8 s"
        ),
    },
    not_counted=(
        "Members that left or were killed where another fault than `rebalance_storm` or "
        "`kill_client` acted, where a leader of the offsets topic changed, or where no other "
        "member lived so long.",
        "Killed members where the group assigned something in the 3 s before.",
    ),
    occasion=Occasion.DEPARTURES,
    opportunities="SELECT COUNT(*) AS n FROM member_departures departures",
    violations="""
SELECT CASE WHEN died = 1 THEN 'kept dead' ELSE 'left behind' END AS sub_kind, p,
  CAST(NULL AS BIGINT) AS off, left_ns AS at_ns, limit_ns AS until_ns, client,
  CAST(limit_ns - left_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS calm_s
FROM member_departures WHERE reassigned_ns IS NULL OR reassigned_ns > limit_ns""",
    explain=_explain,
    tie="finding.client",
    compares_times=True,
    host_load_excuses=True,
    needs=("sends", "polls"),
    reads=("member_departures",),
    rests_on=("polls", "clients", "faults", "states", "commits", "assignments"),
    subjects=("member_departures",),
    no_reference=DERIVED,
)
