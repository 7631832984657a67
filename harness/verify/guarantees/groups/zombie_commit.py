"""A commit of an older generation, or of a replaced static member, is rejected.

A generation is known to be over once a member was assigned partitions in a later one; that later
assignment may be empty (cooperative members keep their partitions). Where members of it, or of
an older one, were assigned partitions after that, the group began anew, and nothing is judged.

A static member is replaced once a later session of its instance, or another client's, was
assigned partitions (KIP-345), and it was assigned none itself since.

`of nobody`: an offset was committed without a generation while the group had a member, which is
permitted only for groups without members (workloads with `present_offsets`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.guarantees.groups.two_owners import LOST_OFFSETS
from urteil.harness.verify.reference import Row, SmallHistory, Violation, is_number

LATE = """
FROM commits c
JOIN (SELECT s.grp, s.generation, s.last_ns, MIN(l.first_ns) AS next_ns,
        MIN(l.generation) AS next_generation
      FROM (SELECT d.grp, d.generation, COALESCE(MAX(a.at_ns), MIN(d.seen_ns)) AS last_ns
            FROM (SELECT a.`group` AS grp, a.generation, MIN(a.at_ns) AS seen_ns
                  FROM assignments a WHERE a.generation >= 0 GROUP BY a.`group`, a.generation) d
            LEFT JOIN assignments a ON a.`group` = d.grp AND a.generation <= d.generation
              AND a.generation >= 0 AND a.event = 'assigned'
            GROUP BY d.grp, d.generation) s
      JOIN (SELECT a.`group` AS grp, a.generation, MIN(a.at_ns) AS first_ns FROM assignments a
            WHERE a.event = 'assigned' AND a.generation >= 0 GROUP BY a.`group`, a.generation) l
        ON l.grp = s.grp AND l.generation > s.generation
      GROUP BY s.grp, s.generation, s.last_ns) g
  ON g.grp = c.`group` AND g.generation = c.generation AND g.last_ns < g.next_ns
JOIN parts q ON q.topic_id = c.topic_id AND q.partition = c.partition
WHERE c.invoke_ns > g.next_ns
"""

_STATIC = """
(SELECT a.`group` AS grp, k.instance, a.client, a.session, MIN(a.at_ns) AS first_ns,
   MAX(a.at_ns) AS last_ns
 FROM assignments a JOIN clients k ON k.client = a.client AND k.session = a.session
 WHERE a.event = 'assigned' AND k.instance IS NOT NULL
 GROUP BY a.`group`, k.instance, a.client, a.session)
"""
"""Sessions of static members, and when they were given something."""

REPLACED = f"""
FROM commits c
JOIN (SELECT o.grp, o.client, o.session, MIN(n.first_ns) AS next_ns, MIN(n.client) AS successor
      FROM {_STATIC} o JOIN {_STATIC} n
        ON n.grp = o.grp AND n.instance = o.instance
          AND (n.client <> o.client OR n.session > o.session)
      WHERE o.last_ns < n.first_ns GROUP BY o.grp, o.client, o.session) s
  ON s.grp = c.`group` AND s.client = c.client AND s.session = c.session
JOIN parts q ON q.topic_id = c.topic_id AND q.partition = c.partition
WHERE c.invoke_ns > s.next_ns
"""


NOBODYS = """
FROM commits c JOIN parts q ON q.topic_id = c.topic_id AND q.partition = c.partition
JOIN (SELECT a.`group` AS grp, a.member_id, a.generation, MIN(a.at_ns) AS first_ns,
        MAX(CASE WHEN a.event = 'kept' THEN a.at_ns END) AS last_ns
      FROM assignments a WHERE a.event IN ('assigned', 'kept') AND a.generation >= 0
      GROUP BY a.`group`, a.member_id, a.generation) m
  ON m.grp = c.`group` AND m.first_ns < c.invoke_ns AND m.last_ns > c.complete_ns
WHERE c.generation = -1
"""
"""Commits while a member was in its group: it received its partitions before, and again later."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "of nobody":
        return (
            f"{row['client']} committed {place(row)} for {row['grp']} in no generation and was "
            "acknowledged, though the group had a member."
        )
    which = f"in generation {row['generation']} and was acknowledged, though "
    since = (
        f"generation {row['next_generation']} had its partitions already."
        if row["successor"] is None
        else f"{row['successor']} had taken its place."
    )
    return f"{row['client']} committed {place(row)} for {row['grp']} {which}{since}"


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No commit is accepted that began after the group had gone on without its sender."""
    for commit in history.commits:
        own = history.assignments_in[commit.group]
        if commit.outcome == "ok":
            for sub_kind, is_late in (
                ("accepted", _is_of_older_generation(own, commit)),
                ("replaced", _is_replaced(history, own, commit)),
                ("of nobody", _is_of_nobody(own, commit)),
            ):
                if is_late:
                    yield Violation(sub_kind, commit.topic, commit.partition, commit.offset, None)


def _is_of_older_generation(own: list[Row], commit: Row) -> bool:
    """Whether a later generation was assigned before the commit, and none as old since."""
    generation = commit.generation
    known = [row for row in own if is_number(row.generation)]
    if generation is None or generation not in {row.generation for row in known}:
        return False
    assigned = [row for row in known if row.event == "assigned"]
    later = [row.at_ns for row in assigned if row.generation > generation]
    until = [row.at_ns for row in assigned if row.generation <= generation] or [
        min(row.at_ns for row in known if row.generation == generation)
    ]
    return bool(later) and max(until) < min(later) < commit.invoke_ns


def _is_replaced(history: SmallHistory, own: list[Row], commit: Row) -> bool:
    """Whether another session of the sender's instance was assigned something before the commit,
    and the sender nothing since."""
    who = (commit.client, commit.session)
    instance = history.instance_of.get(who)
    times: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in own:
        same = history.instance_of.get((row.client, row.session)) == instance
        if row.event == "assigned" and same and instance is not None:
            times[row.client, row.session].append(row.at_ns)
    return who in times and any(
        max(times[who]) < min(found) < commit.invoke_ns
        for other, found in times.items()
        if other[0] != who[0] or other[1] > who[1]
    )


def _is_of_nobody(own: list[Row], commit: Row) -> bool:
    """Whether a commit without a generation came while a member kept its partitions."""
    if commit.generation != -1 or commit.complete_ns is None:
        return False
    members: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in own:
        if row.event in ("assigned", "kept") and is_number(row.generation):
            members[row.member_id, row.generation].append(row)
    return any(
        min(row.at_ns for row in found) < commit.invoke_ns
        and any(row.event == "kept" and row.at_ns > commit.complete_ns for row in found)
        for found in members.values()
    )


GUARANTEE = Guarantee(
    name="zombie_commit",
    rank=20,
    about="a commit of an older generation, of a replaced member, or of none, was accepted",
    promise="If a consumer that has been kicked out of its group commits, the commit fails.",
    source="KafkaConsumer, Detecting Consumer Failures; KIP-62; KIP-345; "
    "GroupCoordinator.doCommitOffsets",
    sub_kinds={
        "accepted": (
            "the commit was invoked in a generation after which a later one had been assigned"
        ),
        "replaced": (
            "it was invoked by a static member after a later session of it, or another client "
            "with its id, had its partitions"
        ),
        "of nobody": (
            "it was invoked without a generation while the group had a member (workloads with "
            "`present_offsets`)"
        ),
    },
    not_counted=(
        "Groups that began anew: members of the older generation were assigned after the later "
        "one.",
        "Members that got an assignment again.",
    ),
    opportunities=f"SELECT SUM(o.n) AS n FROM (SELECT COUNT(*) AS n {LATE} "
    f"UNION ALL SELECT COUNT(*) {REPLACED} UNION ALL SELECT COUNT(*) {NOBODYS}) o",
    violations=f"""
SELECT 'accepted' AS sub_kind, q.p, c.offset AS off, c.invoke_ns AS at_ns,
  c.complete_ns AS until_ns, c.`group` AS grp, c.client, c.session, c.generation, c.member_id,
  g.next_generation, CAST(NULL AS STRING) AS successor
{LATE} AND c.outcome = 'ok'
UNION ALL
SELECT 'replaced', q.p, c.offset, c.invoke_ns, c.complete_ns, c.`group`, c.client, c.session,
  c.generation, c.member_id, NULL, s.successor
{REPLACED} AND c.outcome = 'ok'
UNION ALL
SELECT 'of nobody', q.p, c.offset, c.invoke_ns, c.complete_ns, c.`group`, c.client, c.session,
  c.generation, c.member_id, NULL, NULL
{NOBODYS} AND c.outcome = 'ok'""",
    excuses=(LOST_OFFSETS,),
    explain=_explain,
    tie="j.client",
    compares_times=True,
    needs=("commits", "assignments"),
    reads=("clients", "commits", "assignments"),
    reference=_reference,
)
