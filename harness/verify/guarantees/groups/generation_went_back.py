"""The generations of a group that one member receives only rise.

A generation is on every in-sync replica before its members receive it, so that the next
coordinator continues from it. Only generations received by one session of a client are compared:
another member may learn late of a generation that is over. A member that joins again joins a
later generation.

`forgotten`: the only member of a group, which leads it, received other partitions than it had
assigned to itself in that generation (workloads with `zombie_offsets`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.guarantees.groups.two_owners import LOST_OFFSETS
from urteil.harness.verify.reference import Row, SmallHistory, Violation, is_number

_TOLD = """
SELECT g.*, MAX(g.generation) OVER (
    PARTITION BY g.grp, g.client, g.session ORDER BY g.at_ns, g.generation
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
FROM (SELECT a.`group` AS grp, a.client, a.session, a.generation, a.at_ns, MIN(q.p) AS p
      FROM assignments a JOIN parts q ON q.topic_id = a.topic_id AND q.partition = a.partition
      WHERE a.event = 'assigned' AND a.generation >= 0
      GROUP BY a.`group`, a.client, a.session, a.generation, a.at_ns) g
"""

_KEPT = """
FROM assignments a JOIN parts q ON q.topic_id = a.topic_id AND q.partition = a.partition
WHERE a.event IN ('kept', 'forgotten') AND a.generation >= 0 AND a.at_ns IS NOT NULL
"""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "forgotten":
        return (
            f"{row['client']} leads {row['grp']} and assigned itself a partition in generation "
            f"{row['generation']}; its coordinator returned another assignment."
        )
    return (
        f"{row['client']} was in generation {row['before']} of {row['grp']}, and then received "
        f"its partitions in generation {row['generation']}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A session of a client is assigned partitions of a group in generations that never fall, and
    no member is assigned others than it gave itself."""
    for found in history.assignments_in.values():
        yield from _fallen([row for row in found if is_number(row.generation)])


def _fallen(known: list[Row]) -> Iterator[Violation]:
    """Assignments of one group that are lower than the member's earlier ones, or forgotten."""
    assigned = [row for row in known if row.event == "assigned"]
    for row in assigned:
        own = [other for other in assigned if _is_same_member(other, row)]
        if any(other.at_ns < row.at_ns and other.generation > row.generation for other in own):
            together = [
                other
                for other in own
                if (other.at_ns, other.generation) == (row.at_ns, row.generation)
            ]
            first = min(together, key=lambda other: (other.topic, other.partition))
            yield Violation("fell", first.topic, first.partition, None, None)
    for row in known:
        if row.event == "forgotten":
            yield Violation("forgotten", row.topic, row.partition, None, None)


def _is_same_member(one: Row, other: Row) -> bool:
    names = ("group", "client", "session")
    return all(one[name] == other[name] for name in names)


GUARANTEE = Guarantee(
    name="generation_went_back",
    rank=30,
    about="a group's generation or its assignment went back: the coordinator lost it",
    promise="The group's metadata, its generation and assignments with it, is written to the "
    "offsets topic, from which a new coordinator takes it over.",
    source="KIP-62; GroupMetadataManager.storeGroup, loadGroupsAndOffsets",
    sub_kinds={
        "fell": "one session of a member got partitions in a lower generation than before",
        "forgotten": (
            "the only member of a group got other partitions than it had assigned to itself in "
            "that generation (workloads with `zombie_offsets`)"
        ),
    },
    not_counted=(
        "Clients that do not expose their generation.",
        "Unclean election of the offsets topic.",
    ),
    opportunities=f"SELECT SUM(u.n) AS n FROM (SELECT COUNT(*) AS n FROM ({_TOLD}) t "
    f"WHERE t.before IS NOT NULL UNION ALL SELECT COUNT(*) AS n {_KEPT}) u",
    violations=f"""
SELECT 'fell' AS sub_kind, t.p, CAST(NULL AS BIGINT) AS off, t.at_ns, t.at_ns AS until_ns, t.grp,
  t.client, t.session, t.generation, t.before
FROM ({_TOLD}) t WHERE t.before > t.generation
UNION ALL
SELECT 'forgotten', q.p, NULL, a.at_ns, a.at_ns, a.`group`, a.client, a.session, a.generation, NULL
{_KEPT} AND a.event = 'forgotten'""",
    excuses=(LOST_OFFSETS,),
    explain=_explain,
    tie="j.client, j.session",
    compares_times=True,
    needs=("assignments",),
    reads=("assignments",),
    rests_on=("assignments",),
    reference=_reference,
)
