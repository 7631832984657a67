"""The generations of a group that one member receives only rise; so do its epochs (KIP-848).

A generation is on every in-sync replica before its members receive it, so that the next coordinator
continues from it. Only generations received by one session of a client are compared: another member
may receive a generation after its end. A member that joins again joins a later generation.

`forgotten`: the only member of a group, which leads it, received other partitions than it had
assigned to itself in that generation (workloads with `zombie_offsets`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee
from urteil.harness.verify.guarantees.groups.two_owners import LOST_OFFSETS
from urteil.harness.verify.reference import Row, SmallHistory, Violation, is_number

_GENERATIONS = """
SELECT *, MAX(generation) OVER (
    PARTITION BY grp, client, session ORDER BY at_ns, generation
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
FROM (SELECT received.grp, received.client, received.session, received.generation, received.at_ns,
        MIN(received.p) AS p
      FROM (SELECT assignments.`group` AS grp, assignments.client, assignments.session,
              COALESCE(assignments.member_epoch, assignments.generation) AS generation,
              assignments.at_ns, partitions.p
            FROM assignments JOIN partitions ON partitions.topic_id = assignments.topic_id
              AND partitions.partition = assignments.partition
            WHERE assignments.event = 'assigned') received
      WHERE received.generation >= 0
      GROUP BY received.grp, received.client, received.session, received.generation,
        received.at_ns) claims
"""

_KEPT = """
FROM assignments JOIN partitions ON partitions.topic_id = assignments.topic_id
  AND partitions.partition = assignments.partition
WHERE assignments.event IN ('kept', 'forgotten') AND assignments.generation >= 0
  AND assignments.at_ns IS NOT NULL
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
    """A session of a client is assigned partitions of a group in generations, or epochs, that never
    fall, and no member receives other partitions than it assigned to itself."""
    for assignments in history.assignments_in.values():
        yield from _fallen_generations(assignments)


def _fallen_generations(assignments: list[Row]) -> Iterator[Violation]:
    """Assignments of one group that are lower than the member's earlier ones, or forgotten."""
    known = [row for row in assignments if is_number(row.generation)]
    assigned = [
        row for row in assignments if row.event == "assigned" and is_number(_generation(row))
    ]
    for row in assigned:
        own = [other for other in assigned if _is_same_member(other, row)]
        if any(other.at_ns < row.at_ns and _generation(other) > _generation(row) for other in own):
            together = [
                other
                for other in own
                if (other.at_ns, _generation(other)) == (row.at_ns, _generation(row))
            ]
            first = min(together, key=lambda other: (other.topic, other.partition))
            yield Violation("fell", first.topic, first.partition, None, None)
    for row in known:
        if row.event == "forgotten":
            yield Violation("forgotten", row.topic, row.partition, None, None)


def _generation(row: Row) -> Any:
    return row.generation if row.member_epoch is None else row.member_epoch


def _is_same_member(row: Row, other: Row) -> bool:
    names = ("group", "client", "session")
    return all(row[name] == other[name] for name in names)


GUARANTEE = Guarantee(
    name="generation_went_back",
    rank=30,
    about="a group's generation or its assignment went back: the coordinator lost it",
    promise="The group's metadata, its generation and assignments with it, is written to the "
    "offsets topic, from which a new coordinator takes it over.",
    source="KIP-62; GroupMetadataManager.storeGroup, loadGroupsAndOffsets; KIP-848",
    sub_kinds={
        "fell": (
            "one session of a member got partitions in a lower generation, or member epoch, than "
            "before"
        ),
        "forgotten": (
            "the only member of a group got other partitions than it had assigned to itself in "
            "that generation (workloads with `zombie_offsets`)"
        ),
    },
    not_counted=(
        "Clients that expose neither generation nor member epoch.",
        "Unclean election of the offsets topic.",
    ),
    opportunities=f"SELECT SUM(opportunities.n) AS n "
    f"FROM (SELECT COUNT(*) AS n FROM ({_GENERATIONS}) generations "
    f"WHERE before IS NOT NULL UNION ALL SELECT COUNT(*) AS n {_KEPT}) opportunities",
    violations=f"""
SELECT 'fell' AS sub_kind, p, CAST(NULL AS BIGINT) AS off, at_ns, at_ns AS until_ns, grp,
  client, session, generation, before
FROM ({_GENERATIONS}) generations WHERE before > generation
UNION ALL
SELECT 'forgotten', partitions.p, NULL, assignments.at_ns, assignments.at_ns, assignments.`group`,
  assignments.client, assignments.session, assignments.generation, NULL
{_KEPT} AND assignments.event = 'forgotten'""",
    excuses=(LOST_OFFSETS,),
    explain=_explain,
    tie="finding.client, finding.session",
    compares_times=True,
    needs=("assignments",),
    reads=("assignments",),
    rests_on=("assignments",),
    reference=_reference,
)
