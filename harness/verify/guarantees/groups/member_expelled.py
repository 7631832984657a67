"""A member that polls stays in its group.

`member put out`: a member was removed three times although it polled all through its session
timeout; a session timeout and 5 s after each fault and change of leader do not count. `put out at
takeover`: a new coordinator removed a member sooner than its session timeout, and later than 3 s,
after it took over; it must restart the sessions of its members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Guarantee, Occasion


def _explain(row: Mapping[str, Any]) -> str:
    lasted_s = f"{float(row['calm_s']):.1f} s"
    if row["sub_kind"] == "put out at takeover":
        return (
            f"{row['client']} was removed from its group {lasted_s} after broker {row['reached']} "
            "became its coordinator, sooner than its session timeout."
        )
    return (
        f"{row['client']} was removed from its group {row['waiting']} times in {lasted_s}, "
        "although it polled all the time and no fault acted."
    )


GUARANTEE = Guarantee(
    name="member_expelled",
    rank=80,
    split_from="no_delivery",
    about="a live member was removed from its group",
    promise="A member is removed when it sends no heartbeats within its session timeout, or does "
    "not poll within max.poll.interval.ms, and not before.",
    source="Kafka documentation, Consumer Configs: session.timeout.ms; KIP-62",
    sub_kinds={
        "member put out": (
            "a member was put out of its group three times, though it had polled all through its "
            "session timeout"
        ),
        "put out at takeover": (
            "a member was put out once, less than its session timeout and 3 s after another broker "
            "had become its coordinator"
        ),
    },
    not_counted=(
        "Evictions within a session timeout and 5 s of a fault or of a change of leader of the "
        "offsets topic. At a takeover, where anything but crashes, shutdowns and elections of "
        "preferred leaders acted, or the group was disturbed in the 5 s before.",
    ),
    occasion=Occasion.LIVE_READERS,
    opportunities="""SELECT SUM(opportunities.n) AS n FROM (
  SELECT COUNT(*) AS n FROM undisturbed_intervals WHERE kind = 'group'
  UNION ALL SELECT COUNT(*) FROM evictions) opportunities""",
    violations="""
SELECT CASE WHEN leader IS NULL THEN 'member put out' ELSE 'put out at takeover' END AS sub_kind,
  p, CAST(NULL AS BIGINT) AS off, from_ns AS at_ns, to_ns AS until_ns, client,
  CAST(leader AS BIGINT) AS reached, evictions AS waiting,
  CAST(to_ns - from_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS calm_s
FROM evictions""",
    explain=_explain,
    tie="finding.client",
    compares_times=True,
    host_load_excuses=True,
    needs=("sends", "polls"),
    reads=("undisturbed_intervals", "evictions"),
    rests_on=("polls", "clients", "faults", "states", "commits", "assignments"),
    subjects=("undisturbed_intervals", "evictions"),
    no_reference=DERIVED,
)
