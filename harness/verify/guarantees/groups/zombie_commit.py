"""A commit of an older generation or member epoch, or of a replaced static member, is rejected.

A generation has certainly ended once a member was assigned partitions in a later one; that later
assignment may be empty (cooperative members keep their partitions). If members of it, or of an
older one, were assigned partitions after that, the group was created again, and nothing is judged.
A static member is replaced once a later session of its instance, or another client's, was assigned
partitions (KIP-345), and it was assigned none itself since.

In a group of the protocol `consumer` each member has an epoch of its own (KIP-848), which ends once
the member has received a later one: an assignment in it, or a commit of the member, shows that.

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
FROM commits
JOIN (SELECT last_seen.grp, last_seen.generation, last_seen.last_ns,
        MIN(first_assignments.first_ns) AS next_ns,
        MIN(first_assignments.generation) AS next_generation
      FROM (SELECT generations.grp, generations.generation,
              COALESCE(MAX(assignments.at_ns), MIN(generations.seen_ns)) AS last_ns
            FROM (SELECT assignments.`group` AS grp, assignments.generation,
                    MIN(assignments.at_ns) AS seen_ns
                  FROM assignments WHERE assignments.generation >= 0 GROUP BY assignments.`group`,
                    assignments.generation) generations
            LEFT JOIN assignments ON assignments.`group` = generations.grp
              AND assignments.generation <= generations.generation AND assignments.generation >= 0
              AND assignments.event = 'assigned'
            GROUP BY generations.grp, generations.generation) last_seen
      JOIN (SELECT assignments.`group` AS grp, assignments.generation,
              MIN(assignments.at_ns) AS first_ns FROM assignments
            WHERE assignments.event = 'assigned' AND assignments.generation >= 0
              GROUP BY assignments.`group`, assignments.generation) first_assignments
        ON first_assignments.grp = last_seen.grp
          AND first_assignments.generation > last_seen.generation
      GROUP BY last_seen.grp, last_seen.generation, last_seen.last_ns) successions
  ON successions.grp = commits.`group` AND successions.generation = commits.generation
    AND successions.last_ns < successions.next_ns
JOIN partitions ON partitions.topic_id = commits.topic_id
  AND partitions.partition = commits.partition
WHERE commits.invoke_ns > successions.next_ns
"""

_STATIC = """
(SELECT assignments.`group` AS grp, clients.instance, assignments.client, assignments.session,
   MIN(assignments.at_ns) AS first_ns,
   MAX(assignments.at_ns) AS last_ns
 FROM assignments JOIN clients ON clients.client = assignments.client
   AND clients.session = assignments.session
 WHERE assignments.event = 'assigned' AND clients.instance IS NOT NULL
 GROUP BY assignments.`group`, clients.instance, assignments.client, assignments.session)
"""
"""Sessions of static members, with the times of their assignments."""

REPLACED = f"""
FROM commits
JOIN (SELECT holders.grp, holders.client, holders.session, MIN(successors.first_ns) AS next_ns,
        MIN(successors.client) AS successor
      FROM {_STATIC} holders JOIN {_STATIC} successors
        ON successors.grp = holders.grp AND successors.instance = holders.instance
          AND (successors.client <> holders.client OR successors.session > holders.session)
      WHERE holders.last_ns < successors.first_ns GROUP BY holders.grp, holders.client,
        holders.session) successions
  ON successions.grp = commits.`group` AND successions.client = commits.client
    AND successions.session = commits.session
JOIN partitions ON partitions.topic_id = commits.topic_id
  AND partitions.partition = commits.partition
WHERE commits.invoke_ns > successions.next_ns
"""


WITHOUT_GENERATION = """
FROM commits JOIN partitions ON partitions.topic_id = commits.topic_id
  AND partitions.partition = commits.partition
JOIN (SELECT assignments.`group` AS grp, assignments.member_id, assignments.generation,
        MIN(assignments.at_ns) AS first_ns,
        MAX(CASE WHEN assignments.event = 'kept' THEN assignments.at_ns END) AS last_ns
      FROM assignments WHERE assignments.event IN ('assigned', 'kept')
        AND assignments.generation >= 0
      GROUP BY assignments.`group`, assignments.member_id, assignments.generation) memberships
  ON memberships.grp = commits.`group` AND memberships.first_ns < commits.invoke_ns
    AND memberships.last_ns > commits.complete_ns
WHERE commits.generation = -1
"""
"""Commits while a member was in its group: it received its partitions before, and again later."""


_EPOCHS = """
SELECT assignments.`group` AS grp, assignments.member_id, assignments.member_epoch AS epoch,
  assignments.at_ns, assignments.at_ns AS assigned_ns
FROM assignments WHERE assignments.event = 'assigned' AND assignments.member_epoch IS NOT NULL
UNION ALL
SELECT commits.`group`, commits.member_id, commits.member_epoch, commits.invoke_ns,
  CAST(NULL AS BIGINT)
FROM commits WHERE commits.member_epoch IS NOT NULL
"""
"""Assignments and commits that show which epoch a member had received."""

STALE = f"""
FROM commits
JOIN (SELECT epochs.grp, epochs.member_id, epochs.epoch, MIN(later_epochs.at_ns) AS next_ns,
        MIN(later_epochs.epoch) AS next_epoch
      FROM (SELECT DISTINCT grp, member_id, epoch FROM ({_EPOCHS}) received) epochs
      JOIN ({_EPOCHS}) later_epochs ON later_epochs.grp = epochs.grp
        AND later_epochs.member_id = epochs.member_id AND later_epochs.epoch > epochs.epoch
      GROUP BY epochs.grp, epochs.member_id, epochs.epoch) successions
  ON successions.grp = commits.`group` AND successions.member_id = commits.member_id
    AND successions.epoch = commits.member_epoch
JOIN partitions ON partitions.topic_id = commits.topic_id
  AND partitions.partition = commits.partition
WHERE commits.invoke_ns > successions.next_ns
  AND NOT EXISTS (SELECT 1 FROM ({_EPOCHS}) again WHERE again.grp = successions.grp
                    AND again.member_id = successions.member_id
                    AND again.epoch <= successions.epoch
                    AND again.assigned_ns >= successions.next_ns)
"""
"""Commits of a member in an epoch that has ended; none if the member was later assigned partitions
in one as old."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "stale epoch":
        return (
            f"{row['client']} committed {place(row)} for {row['grp']} in member epoch "
            f"{row['generation']} and was acknowledged, though it was in epoch "
            f"{row['next_generation']} already."
        )
    if row["sub_kind"] == "of nobody":
        return (
            f"{row['client']} committed {place(row)} for {row['grp']} in no generation and was "
            "acknowledged, though the group had a member."
        )
    attempt = f"in generation {row['generation']} and was acknowledged, though "
    succession = (
        f"generation {row['next_generation']} had its partitions already."
        if row["successor"] is None
        else f"{row['successor']} had taken its place."
    )
    return f"{row['client']} committed {place(row)} for {row['grp']} {attempt}{succession}"


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No commit is accepted that began after the group had continued without its sender."""
    for commit in history.commits:
        assignments = history.assignments_in[commit.group]
        if commit.outcome == "ok":
            for sub_kind, is_late in (
                ("accepted", _is_of_older_generation(assignments, commit)),
                ("replaced", _is_replaced(history, assignments, commit)),
                ("of nobody", _lacks_generation(assignments, commit)),
                ("stale epoch", _is_of_older_epoch(history, assignments, commit)),
            ):
                if is_late:
                    yield Violation(sub_kind, commit.topic, commit.partition, commit.offset, None)


def _is_of_older_generation(assignments: list[Row], commit: Row) -> bool:
    """Whether a later generation was assigned before the commit, and none as old since."""
    generation = commit.generation
    known = [row for row in assignments if is_number(row.generation)]
    if generation is None or generation not in {row.generation for row in known}:
        return False
    assigned = [row for row in known if row.event == "assigned"]
    later = [row.at_ns for row in assigned if row.generation > generation]
    until = [row.at_ns for row in assigned if row.generation <= generation] or [
        min(row.at_ns for row in known if row.generation == generation)
    ]
    return bool(later) and max(until) < min(later) < commit.invoke_ns


def _is_replaced(history: SmallHistory, assignments: list[Row], commit: Row) -> bool:
    """Whether another session of the sender's instance was assigned something before the commit,
    and the sender nothing since."""
    sender = (commit.client, commit.session)
    instance = history.instance_of.get(sender)
    times: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row in assignments:
        same = history.instance_of.get((row.client, row.session)) == instance
        if row.event == "assigned" and same and instance is not None:
            times[row.client, row.session].append(row.at_ns)
    return sender in times and any(
        max(times[sender]) < min(times_of_other) < commit.invoke_ns
        for other, times_of_other in times.items()
        if other[0] != sender[0] or other[1] > sender[1]
    )


def _lacks_generation(assignments: list[Row], commit: Row) -> bool:
    """Whether a commit without a generation came while a member kept its partitions."""
    if commit.generation != -1 or commit.complete_ns is None:
        return False
    members: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in assignments:
        if row.event in ("assigned", "kept") and is_number(row.generation):
            members[row.member_id, row.generation].append(row)
    return any(
        min(row.at_ns for row in member) < commit.invoke_ns
        and any(row.event == "kept" and row.at_ns > commit.complete_ns for row in member)
        for member in members.values()
    )


def _is_of_older_epoch(history: SmallHistory, assignments: list[Row], commit: Row) -> bool:
    """Whether the member had received a later epoch before the commit, and none as old since."""
    if commit.member_epoch is None or commit.member_id is None:
        return False
    assigned = [
        (row.member_epoch, row.at_ns)
        for row in assignments
        if row.event == "assigned"
        and row.member_id == commit.member_id
        and row.member_epoch is not None
    ]
    committed = [
        (row.member_epoch, row.invoke_ns)
        for row in history.commits
        if (row.group, row.member_id) == (commit.group, commit.member_id)
        and row.member_epoch is not None
    ]
    later = [at_ns for epoch, at_ns in assigned + committed if epoch > commit.member_epoch]
    return (
        bool(later)
        and min(later) < commit.invoke_ns
        and not any(
            epoch <= commit.member_epoch and at_ns >= min(later) for epoch, at_ns in assigned
        )
    )


GUARANTEE = Guarantee(
    name="zombie_commit",
    rank=20,
    about="a commit of an older generation or member epoch, of a replaced member, or of none, was "
    "accepted",
    promise="If a consumer that has been kicked out of its group commits, the commit fails.",
    source="KafkaConsumer, Detecting Consumer Failures; KIP-62; KIP-345; "
    "GroupCoordinator.doCommitOffsets; KIP-848, OffsetCommit: STALE_MEMBER_EPOCH",
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
        "stale epoch": (
            "in a group of the protocol `consumer`, it was invoked in a member epoch after the "
            "member had received a later one"
        ),
    },
    not_counted=(
        "Groups that began anew: members of the older generation were assigned after the later "
        "one.",
        "Members that got an assignment again.",
    ),
    opportunities=f"SELECT SUM(opportunities.n) AS n FROM (SELECT COUNT(*) AS n {LATE} "
    f"UNION ALL SELECT COUNT(*) {REPLACED} UNION ALL SELECT COUNT(*) {WITHOUT_GENERATION} "
    f"UNION ALL SELECT COUNT(*) {STALE}) opportunities",
    violations=f"""
SELECT 'accepted' AS sub_kind, partitions.p, commits.offset AS off, commits.invoke_ns AS at_ns,
  commits.complete_ns AS until_ns, commits.`group` AS grp, commits.client, commits.session,
  commits.generation, commits.member_id, successions.next_generation,
  CAST(NULL AS STRING) AS successor
{LATE} AND commits.outcome = 'ok'
UNION ALL
SELECT 'replaced', partitions.p, commits.offset, commits.invoke_ns, commits.complete_ns,
  commits.`group`, commits.client, commits.session, commits.generation, commits.member_id, NULL,
  successions.successor
{REPLACED} AND commits.outcome = 'ok'
UNION ALL
SELECT 'of nobody', partitions.p, commits.offset, commits.invoke_ns, commits.complete_ns,
  commits.`group`, commits.client, commits.session, commits.generation, commits.member_id, NULL,
  NULL
{WITHOUT_GENERATION} AND commits.outcome = 'ok'
UNION ALL
SELECT 'stale epoch', partitions.p, commits.offset, commits.invoke_ns, commits.complete_ns,
  commits.`group`, commits.client, commits.session, commits.member_epoch, commits.member_id,
  successions.next_epoch, NULL
{STALE} AND commits.outcome = 'ok'""",
    excuses=(LOST_OFFSETS,),
    explain=_explain,
    tie="finding.client",
    compares_times=True,
    needs=("commits", "assignments"),
    reads=("clients", "commits", "assignments"),
    reference=_reference,
)
