"""A live group can commit offsets while no fault acts.

Judged in the undisturbed intervals of `no_delivery`: no fault acted, no leader was elected, and no
member joined, left, paused or resumed. A group whose three or more commits at the end of such an
interval all failed violates the promise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DERIVED, Guarantee, Occasion


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['name']} could commit no offset in {float(row['calm_s']):.1f} s in which no fault "
        f"acted, although its members tried {row['waiting']} times at the end."
    )


GUARANTEE = Guarantee(
    name="commits_stand_still",
    rank=70,
    split_from="no_delivery",
    about="a live group could commit no offset",
    promise="A coordinator stores the offsets that the members of a live group commit.",
    source="Kafka documentation, 4.5 The Consumer; 9.4 Consumer Offset Tracking",
    sub_kinds={
        "commits stand still": (
            "in a time without faults all commits of a group failed, three or more"
        ),
    },
    not_counted=(
        "Times in which a fault acted, a leader changed, or a member joined, left, paused or "
        "resumed: the wait counts from then on.",
    ),
    occasion=Occasion.LIVE_READERS,
    opportunities="""SELECT COUNT(*) AS n FROM undisturbed_intervals
WHERE kind = 'group' AND (successful_commits > 0 OR commit_attempts > 2)""",
    violations="""
SELECT 'commits stand still' AS sub_kind, CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off,
  MAX(to_ns - bound_ns) AS at_ns, MAX(to_ns) AS until_ns, name, MAX(commit_attempts) AS waiting,
  CAST(MAX(to_ns - from_ns) AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS calm_s
FROM undisturbed_intervals
WHERE polled = 1 AND kind = 'group' AND successful_commits = 0 AND commit_attempts > 2
  AND to_ns - from_ns >= bound_ns
GROUP BY name""",
    explain=_explain,
    tie="finding.name",
    compares_times=True,
    host_load_excuses=True,
    needs=("sends", "polls"),
    reads=("undisturbed_intervals",),
    rests_on=("polls", "clients", "faults", "states", "commits", "assignments"),
    subjects=("undisturbed_intervals",),
    no_reference=DERIVED,
)
