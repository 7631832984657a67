"""A static member that returns within its session timeout causes no rebalance.

Judged is each killed static member whose next session joined within two thirds of the session
timeout, less a second: the group must be in the same generation (`derived/static_rejoins.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.chaos.capabilities import STATIC_MEMBERS
from urteil.harness.verify.guarantees.base import DERIVED, Guarantee, Occasion


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['client']}, a static member, returned {float(row['calm_s']):.1f} s after it was "
        f"killed, within its session timeout, but in a later generation (by {row['waiting']})."
    )


GUARANTEE = Guarantee(
    name="static_member_rebalanced",
    rank=100,
    split_from="no_delivery",
    about="a static member that returned in time caused a rebalance",
    promise="A static member that returns within its session timeout receives its assignment "
    "again, and no rebalance begins.",
    source="KIP-345",
    sub_kinds={
        "rebalanced": (
            "a killed static member was back within two thirds of its session timeout, less a "
            "second, and continued in a later generation"
        ),
    },
    not_counted=("Rejoins where another member joined or left meanwhile.",),
    requires=(STATIC_MEMBERS,),
    occasion=Occasion.DEPARTURES,
    opportunities="SELECT COUNT(*) AS n FROM static_rejoins rejoins",
    violations="""
SELECT 'rebalanced' AS sub_kind, p, CAST(NULL AS BIGINT) AS off, died_ns AS at_ns,
  rejoined_ns AS until_ns, client, new_generation - old_generation AS waiting,
  CAST(rejoined_ns - died_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS calm_s
FROM static_rejoins WHERE new_generation > old_generation""",
    explain=_explain,
    tie="finding.client",
    compares_times=True,
    host_load_excuses=True,
    needs=("sends", "polls"),
    reads=("static_rejoins",),
    rests_on=("polls", "clients", "faults", "states", "commits", "assignments"),
    subjects=("static_rejoins",),
    no_reference=DERIVED,
)
