"""In a group of the protocol `consumer`, one member at a time owns a partition.

The coordinator assigns a partition to a member only after its former owner has revoked it
(KIP-848), and members do not wait for each other: they have epochs of their own, and no common
generation. So ownership is compared in time. It is not as simple as it looks: a stalled member does
not know yet that its partitions were assigned to another member, and may even receive an assignment
that has long ended.

Therefore only proven ownership counts: a member owns a partition from its callback until the last
commit of the partition that the coordinator accepted before the member revoked it. The coordinator
accepts commits of members alone, and a member that lost its membership is informed before it joins
again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion
from urteil.harness.verify.guarantees.groups.two_owners import LOST_OFFSETS
from urteil.harness.verify.reference import Row, SmallHistory, Violation

_SPANS = """
SELECT assignments.`group` AS grp, assignments.topic_id, assignments.partition, assignments.client,
  assignments.session, assignments.event, assignments.member_epoch, assignments.at_ns,
  LEAD(assignments.at_ns) OVER (PARTITION BY assignments.`group`, assignments.topic_id,
    assignments.partition, assignments.client, assignments.session
    ORDER BY assignments.at_ns, assignments.event) AS next_ns
FROM assignments WHERE assignments.event IN ('assigned', 'revoked', 'lost')
"""
"""The callbacks of a member about a partition, each with the time of the next one."""

OWNED = f"""
SELECT spans.grp, spans.topic_id, spans.partition, spans.client, spans.session,
  MIN(spans.member_epoch) AS epoch, spans.at_ns, MAX(commits.invoke_ns) AS until_ns
FROM ({_SPANS}) spans
JOIN commits ON commits.`group` = spans.grp AND commits.topic_id = spans.topic_id
  AND commits.partition = spans.partition AND commits.client = spans.client
  AND commits.session = spans.session
WHERE spans.event = 'assigned' AND spans.member_epoch IS NOT NULL AND commits.outcome = 'ok'
  AND commits.member_epoch IS NOT NULL AND commits.invoke_ns >= spans.at_ns
  AND (spans.next_ns IS NULL OR commits.invoke_ns < spans.next_ns)
GROUP BY spans.grp, spans.topic_id, spans.partition, spans.client, spans.session, spans.at_ns
"""
"""Proven ownership: from an assignment to the last commit in it that was accepted."""


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['client']} was assigned {row['topic']}-{row['partition']} of {row['grp']} in member "
        f"epoch {row['epoch']}, and the coordinator accepted its commits, while {row['other']} "
        "owned the partition and committed in it."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """When a member is assigned a partition and commits in it, the former owner has made its last
    commit."""
    for partition in history.partitions:
        place = (partition.topic, partition.partition)
        callbacks = [row for row in history.assignments if (row.topic, row.partition) == place]
        owned = [
            (row, until_ns)
            for row in callbacks
            if row.event == "assigned" and row.member_epoch is not None
            for until_ns in _ends_of_ownership(row, callbacks, partition.commits)
        ]
        second_owners = {
            (later.group, later.client, later.session)
            for (earlier, until_ns), (later, _) in permutations(owned, 2)
            if earlier.group == later.group
            and (earlier.client, earlier.session) != (later.client, later.session)
            and earlier.at_ns <= later.at_ns <= until_ns
        }
        for _ in second_owners:
            yield partition.violation("at once")


def _ends_of_ownership(row: Row, callbacks: list[Row], commits: list[Row]) -> list[int]:
    """The last accepted commit in an assignment; empty without one."""
    member = (row.group, row.client, row.session)
    later = [
        (other.at_ns, other.event)
        for other in callbacks
        if (other.group, other.client, other.session) == member
        and other.event in ("assigned", "revoked", "lost")
        and (other.at_ns, other.event) > (row.at_ns, row.event)
    ]
    next_ns = min(later)[0] if later else None
    times = [
        commit.invoke_ns
        for commit in commits
        if (commit.group, commit.client, commit.session) == member
        and commit.outcome == "ok"
        and commit.member_epoch is not None
        and row.at_ns <= commit.invoke_ns
        and (next_ns is None or commit.invoke_ns < next_ns)
    ]
    return [max(times)] if times else []


GUARANTEE = Guarantee(
    name="overlapping_owners",
    rank=15,
    split_from="two_owners",
    about="two members of a group of the protocol `consumer` owned one partition at the same time",
    promise="A partition is assigned to a member when the member that owned it before has revoked "
    "it.",
    source="KIP-848, Rebalance Process; KAFKA-16147",
    sub_kinds={
        "at once": "two members had the partition and committed in it, and their times overlap"
    },
    details=(
        "A member owns a partition from its callback until the last accepted commit of the "
        "partition before the callback that takes it away.",
    ),
    not_counted=(
        "Members of the protocol `classic`, which share a generation (`two_owners`).",
        "A member without an accepted commit: it may have stood still, and been replaced.",
    ),
    occasion=Occasion.MEMBER_EPOCHS,
    opportunities=f"SELECT COUNT(*) AS n FROM ({OWNED}) owned",
    violations=f"""
SELECT 'at once' AS sub_kind, partitions.p, CAST(NULL AS BIGINT) AS off, MIN(later.at_ns) AS at_ns,
  MAX(later.until_ns) AS until_ns, later.grp, MIN(later.epoch) AS epoch, later.client,
  later.session, MIN(earlier.client) AS other
FROM ({OWNED}) earlier JOIN ({OWNED}) later ON later.grp = earlier.grp
  AND later.topic_id = earlier.topic_id AND later.partition = earlier.partition
  AND (later.client <> earlier.client OR later.session <> earlier.session)
JOIN partitions ON partitions.topic_id = later.topic_id AND partitions.partition = later.partition
WHERE earlier.at_ns <= later.at_ns AND later.at_ns <= earlier.until_ns
GROUP BY partitions.p, later.grp, later.client, later.session""",
    excuses=(LOST_OFFSETS,),
    explain=_explain,
    tie="finding.grp, finding.client, finding.session",
    compares_times=True,
    needs=("assignments", "commits"),
    reads=("assignments", "commits"),
    rests_on=("assignments", "commits"),
    reference=_reference,
)
