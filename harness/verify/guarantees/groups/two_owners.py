"""Within one generation of a group a partition belongs to one member, as its leader assigned it.

A member claims a partition by its assignment, or by an acknowledged commit in that generation: with
cooperative rebalancing, members keep partitions without a new assignment. All sessions of a static
member are one owner, since it receives its former partitions again (KIP-345).

`of another`: the leader had assigned the partition to another member alone (clients that journal
what they assign as leaders). If a generation was not stored, another leader may start it again, so
the assignments of all of them count. Static members return under new member ids and are left
out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.permitted_deviations import Permit
from urteil.harness.verify.guarantees.base import Excuse, Guarantee
from urteil.harness.verify.reference import SmallHistory, Violation, is_number

LOST_OFFSETS = Excuse(
    when="(SELECT MAX(unclean_on) FROM partitions WHERE topic = '__consumer_offsets') = 1",
    reason="unclean election is on: the offsets topic itself may have lost its tail",
    reads=("partitions", "partitions.unclean_on"),
    permits=(Permit.UNCLEAN_ELECTION,),
)
"""The coordinator's log may lose acknowledged offsets and assignments."""

CLAIMS = """
SELECT assignments.`group` AS grp, assignments.generation, assignments.topic_id,
  assignments.partition, assignments.client, assignments.session, assignments.at_ns AS at_ns
FROM assignments WHERE assignments.event = 'assigned' AND assignments.generation >= 0
UNION ALL
SELECT commits.`group`, commits.generation, commits.topic_id, commits.partition, commits.client,
  commits.session, commits.complete_ns
FROM commits WHERE commits.outcome = 'ok' AND commits.generation >= 0
"""

OWNED = f"""
SELECT claims.grp, claims.generation, claims.topic_id, claims.partition, claims.at_ns,
  claims.client, COALESCE(clients.instance, claims.client) AS owner,
  CASE WHEN clients.instance IS NULL THEN claims.session END AS owner_session
FROM ({CLAIMS}) claims LEFT JOIN clients ON clients.client = claims.client
  AND clients.session = claims.session
"""

_LEADER_ASSIGNMENTS = """
FROM (SELECT assignments.`group` AS grp, assignments.generation, assignments.topic_id,
        assignments.partition, assignments.client, assignments.member_id, assignments.at_ns
      FROM assignments LEFT JOIN clients ON clients.client = assignments.client
        AND clients.session = assignments.session
      WHERE assignments.event = 'assigned' AND assignments.generation >= 0
        AND assignments.member_id IS NOT NULL
        AND clients.instance IS NULL) partition_claims
JOIN assignments ON assignments.`group` = partition_claims.grp
  AND assignments.generation = partition_claims.generation
  AND assignments.topic_id = partition_claims.topic_id
  AND assignments.partition = partition_claims.partition AND assignments.event = 'given'
JOIN partitions ON partitions.topic_id = partition_claims.topic_id
  AND partitions.partition = partition_claims.partition
"""


def _explain(row: Mapping[str, Any]) -> str:
    where = f"{row['topic']}-{row['partition']} in generation {row['generation']}"
    if row["sub_kind"] == "of another":
        return (
            f"{row['client']} was assigned {where} of {row['grp']}, which its leader, "
            f"{row['other']}, had assigned to another member."
        )
    return (
        f"{row['owners']} members of {row['grp']}, {row['client']} and {row['other']} among them, "
        f"held {where}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """In one generation of a group a partition has one owner: a client's session, or a static
    member. A member is assigned only what the leader assigned to it."""
    owners: dict[tuple[Any, ...], set[Any]] = defaultdict(set)
    assigned = [row for row in history.assignments if row.event == "assigned"]
    accepted = [row for row in history.commits if row.outcome == "ok"]
    for row in (*assigned, *accepted):
        if is_number(row.generation):
            session = (row.client, row.session)
            owners[row.group, row.generation, row.topic, row.partition].add(
                history.instance_of.get(session) or session
            )
    for (_, _, topic, partition), owner in owners.items():
        if len(owner) > 1:
            yield Violation("one generation", topic, partition, None, None)
    for row in assigned:
        assigned_ids = {
            other.member_id
            for other in history.assignments_in[row.group]
            if other.event == "given" and all(other[name] == row[name] for name in _CLAIM)
        }
        is_static = history.instance_of.get((row.client, row.session)) is not None
        is_known = row.member_id is not None and is_number(row.generation)
        if is_known and not is_static and assigned_ids and row.member_id not in assigned_ids:
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
    unused_evidence=(
        "Reads of two members in one generation: a client library may return records that "
        "it fetched before a rebalance.",
    ),
    opportunities="SELECT COUNT(*) AS n FROM assignments "
    "WHERE event = 'assigned' AND generation >= 0",
    violations=f"""
SELECT 'one generation' AS sub_kind, partitions.p, CAST(NULL AS BIGINT) AS off, conflicts.at_ns,
  conflicts.until_ns, conflicts.grp, conflicts.generation, conflicts.client, conflicts.other,
  conflicts.owners
FROM (SELECT owners.grp, owners.generation, owners.topic_id, owners.partition,
        MIN(owners.at_ns) AS at_ns,
        MAX(owners.at_ns) AS until_ns, MIN(owners.client) AS client, MAX(owners.client) AS other,
        COUNT(*) AS owners
      FROM (SELECT ownerships.grp, ownerships.generation, ownerships.topic_id, ownerships.partition,
              ownerships.owner, ownerships.owner_session,
              MIN(ownerships.client) AS client, MIN(ownerships.at_ns) AS at_ns
            FROM ({OWNED}) ownerships
            GROUP BY ownerships.grp, ownerships.generation, ownerships.topic_id,
              ownerships.partition, ownerships.owner, ownerships.owner_session) owners
      GROUP BY owners.grp, owners.generation, owners.topic_id, owners.partition
        HAVING COUNT(*) > 1) conflicts
JOIN partitions ON partitions.topic_id = conflicts.topic_id
  AND partitions.partition = conflicts.partition
UNION ALL
SELECT 'of another', partitions.p, NULL, MIN(partition_claims.at_ns), MAX(partition_claims.at_ns),
  partition_claims.grp, partition_claims.generation, partition_claims.client,
  MAX(assignments.client), COUNT(*)
{_LEADER_ASSIGNMENTS} GROUP BY partitions.p, partition_claims.grp, partition_claims.generation,
partition_claims.client, partition_claims.member_id
HAVING MAX(CASE WHEN assignments.member_id = partition_claims.member_id THEN 1 ELSE 0 END) = 0""",
    excuses=(LOST_OFFSETS,),
    explain=_explain,
    tie="finding.grp, finding.generation, finding.client",
    needs=("assignments",),
    reads=("clients", "commits", "assignments"),
    reference=_reference,
)
