"""Within one generation of a group a partition belongs to one member, as its leader assigned it.

A member claims a partition by its assignment, or by an acknowledged commit in that generation:
with cooperative rebalancing, members keep partitions without a new assignment. All sessions of a
static member are one owner, since it gets its former partitions back (KIP-345).

`of another`: the leader had assigned the partition to another member alone (clients that journal
what they assign as leaders). A generation that was not stored may be started again by another
leader, so the assignments of all of them count. Static members return under new member ids and
are left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Excuse, Guarantee
from urteil.harness.verify.reference import SmallHistory, Violation, is_number

LOST_OFFSETS = Excuse(
    when="(SELECT MAX(o.unclean_on) FROM parts o WHERE o.topic = '__consumer_offsets') = 1",
    reason="unclean election is on: the offsets topic itself may have lost its tail",
    reads=("parts", "parts.unclean_on"),
)
"""The coordinator's own log may lose what it acknowledged."""

CLAIMS = """
SELECT a.`group` AS grp, a.generation, a.topic_id, a.partition, a.client, a.session,
  a.at_ns AS at_ns
FROM assignments a WHERE a.event = 'assigned' AND a.generation >= 0
UNION ALL
SELECT c.`group`, c.generation, c.topic_id, c.partition, c.client, c.session, c.complete_ns
FROM commits c WHERE c.outcome = 'ok' AND c.generation >= 0
"""

OWNED = f"""
SELECT l.grp, l.generation, l.topic_id, l.partition, l.at_ns, l.client,
  COALESCE(i.instance, l.client) AS owner, CASE WHEN i.instance IS NULL THEN l.session END AS own
FROM ({CLAIMS}) l LEFT JOIN clients i ON i.client = l.client AND i.session = l.session
"""

_GIVEN = """
FROM (SELECT a.`group` AS grp, a.generation, a.topic_id, a.partition, a.client, a.member_id, a.at_ns
      FROM assignments a LEFT JOIN clients i ON i.client = a.client AND i.session = a.session
      WHERE a.event = 'assigned' AND a.generation >= 0 AND a.member_id IS NOT NULL
        AND i.instance IS NULL) a
JOIN assignments g ON g.`group` = a.grp AND g.generation = a.generation
  AND g.topic_id = a.topic_id AND g.partition = a.partition AND g.event = 'given'
JOIN parts q ON q.topic_id = a.topic_id AND q.partition = a.partition
"""


def _explain(row: Mapping[str, Any]) -> str:
    where = f"{row['topic']}-{row['partition']} in generation {row['generation']}"
    if row["sub_kind"] == "of another":
        return (
            f"{row['client']} was given {where} of {row['grp']}, which its leader, {row['other']}, "
            "had given to another member."
        )
    return (
        f"{row['owners']} members of {row['grp']}, {row['client']} and {row['other']} among them, "
        f"held {where}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """In one generation of a group a partition has one owner: a client's session, or a static
    member; and who is assigned it is who the leader gave it to."""
    owners: dict[tuple[Any, ...], set[Any]] = defaultdict(set)
    assigned = [row for row in history.assignments if row.event == "assigned"]
    accepted = [row for row in history.commits if row.outcome == "ok"]
    for row in (*assigned, *accepted):
        if is_number(row.generation):
            who = (row.client, row.session)
            owners[row.group, row.generation, row.topic, row.partition].add(
                history.instance_of.get(who) or who
            )
    for (_, _, topic, partition), found in owners.items():
        if len(found) > 1:
            yield Violation("one generation", topic, partition, None, None)
    for row in assigned:
        given = {
            other.member_id
            for other in history.assignments_in[row.group]
            if other.event == "given" and all(other[name] == row[name] for name in _CLAIM)
        }
        is_static = history.instance_of.get((row.client, row.session)) is not None
        is_known = row.member_id is not None and is_number(row.generation)
        if is_known and not is_static and given and row.member_id not in given:
            yield Violation("of another", row.topic, row.partition, None, None)


_CLAIM = ("group", "generation", "topic", "partition")


GUARANTEE = Guarantee(
    name="two_owners",
    rank=10,
    about="two members of a group own one partition in one generation, or one owns another's",
    promise="Each partition is consumed by exactly one consumer within each subscribing consumer "
    "group at any given time; the coordinator gives each member what the leader assigned to it.",
    source="Kafka documentation, 4.5 The Consumer; KIP-429; Kafka protocol: SyncGroup",
    sub_kinds={
        "one generation": "two members own the partition in one generation",
        "of another": "a member got what its leader assigned to another one in that generation",
    },
    details=(
        "A member claims a partition by its assignment, or by an acknowledged commit of that "
        "generation.",
    ),
    not_counted=(
        "Clients that do not expose their generation, and sessions of one static member, which "
        "are one.",
        "`of another` for static members, for assignments of several leaders in one generation, "
        "and for clients that do not expose their assignments (all but kafka-python).",
    ),
    opportunities="SELECT COUNT(*) AS n FROM assignments a "
    "WHERE a.event = 'assigned' AND a.generation >= 0",
    violations=f"""
SELECT 'one generation' AS sub_kind, q.p, CAST(NULL AS BIGINT) AS off, k.at_ns, k.until_ns,
  k.grp, k.generation, k.client, k.other, k.owners
FROM (SELECT m.grp, m.generation, m.topic_id, m.partition, MIN(m.at_ns) AS at_ns,
        MAX(m.at_ns) AS until_ns, MIN(m.client) AS client, MAX(m.client) AS other,
        COUNT(*) AS owners
      FROM (SELECT l.grp, l.generation, l.topic_id, l.partition, l.owner, l.own,
              MIN(l.client) AS client, MIN(l.at_ns) AS at_ns
            FROM ({OWNED}) l
            GROUP BY l.grp, l.generation, l.topic_id, l.partition, l.owner, l.own) m
      GROUP BY m.grp, m.generation, m.topic_id, m.partition HAVING COUNT(*) > 1) k
JOIN parts q ON q.topic_id = k.topic_id AND q.partition = k.partition
UNION ALL
SELECT 'of another', q.p, NULL, MIN(a.at_ns), MAX(a.at_ns), a.grp, a.generation, a.client,
  MAX(g.client), COUNT(*)
{_GIVEN} GROUP BY q.p, a.grp, a.generation, a.client, a.member_id
HAVING MAX(CASE WHEN g.member_id = a.member_id THEN 1 ELSE 0 END) = 0""",
    excuses=(LOST_OFFSETS,),
    explain=_explain,
    tie="j.grp, j.generation, j.client",
    needs=("assignments",),
    reads=("clients", "commits", "assignments"),
    reference=_reference,
)
