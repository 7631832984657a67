"""The group processed every visible record below a committed offset.

A record counts as processed once the member journaled it. A member killed before that did not
commit the record either.

Not counted: records that the group never requested (it may begin at the end with
auto.offset.reset=latest, and a member may seek), deleted records, since DeleteRecords leaves
records on disk below the log start, and commits in a mirror, where the group begins at translated
offsets (`translated_too_far`).

`beyond the end`: a member of a group that reads committed an offset that the partition never
had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from urteil.harness.permitted_deviations import Permit
from urteil.harness.verify.guarantees.base import DUE, Excuse, Guarantee, place
from urteil.harness.verify.guarantees.compaction.keyed_sends import kept_records
from urteil.harness.verify.guarantees.losses import LOSSES
from urteil.harness.verify.reference import Partition, SmallHistory, Violation, is_number

_ROWS = f"""
FROM (SELECT partitions.p, commits.`group` AS grp, MAX(commits.offset) AS top,
        MIN(commits.complete_ns) AS at_ns,
        MAX(commits.complete_ns) AS until_ns, MAX(partitions.log_start) AS start,
        MAX(partitions.unclean_on) AS unclean_on, MAX(partitions.unclean_floor) AS unclean_floor,
        MAX(partitions.lost_floor) AS lost_floor, MAX(partitions.losses_ns) AS losses_ns
      FROM commits JOIN partitions ON partitions.topic_id = commits.topic_id
        AND partitions.partition = commits.partition
      WHERE commits.outcome = 'ok' AND partitions.p NOT IN (SELECT p FROM mirrors)
      GROUP BY partitions.p, commits.`group`) highest_commits
JOIN {DUE} due_records ON due_records.p = highest_commits.p JOIN grps
  ON grps.grp = highest_commits.grp
"""
_BELOW = """
WHERE due_records.off < highest_commits.top AND due_records.off >= highest_commits.start
  AND NOT EXISTS (SELECT 1 FROM damaged JOIN members ON members.client = damaged.client
                  WHERE (members.bits & grps.bit) <> 0)
"""
PASSED = f"{_ROWS} {_BELOW}"

_GROUP_POLLS = """
SELECT partitions.p, grps.grp, polls.client, polls.session, polls.poll, polls.event,
  polls.position_before, polls.position_after
FROM polls JOIN partitions ON partitions.topic_id = polls.topic_id
  AND partitions.partition = polls.partition
JOIN members ON members.client = polls.client AND members.session = polls.session
JOIN grps ON (members.bits & grps.bit) <> 0
"""
_BEGUN = f"""
SELECT lowest_polls.p, lowest_polls.grp, CASE WHEN lowest_answers.low < lowest_polls.low
    THEN lowest_answers.low ELSE lowest_polls.low END AS low
FROM (SELECT p, grp, MIN(position_before) AS low FROM ({_GROUP_POLLS}) group_polls GROUP BY p,
        grp) lowest_polls
LEFT JOIN (SELECT partitions.p, commit_reads.`group` AS grp, MIN(commit_reads.offset) AS low
           FROM commit_reads JOIN partitions
             ON partitions.topic_id = commit_reads.topic_id
               AND partitions.partition = commit_reads.partition
           WHERE commit_reads.outcome = 'ok' AND commit_reads.offset >= 0 GROUP BY partitions.p,
             commit_reads.`group`) lowest_answers
  ON lowest_answers.p = lowest_polls.p AND lowest_answers.grp = lowest_polls.grp
"""
"""The offset at which a group began: the lowest one that its members or its coordinator
reported."""

_SEEKS = f"""
SELECT p, grp, low, high
FROM (SELECT p, grp, event, position_before AS high, LAG(position_after) OVER (
        PARTITION BY client, session, p, grp ORDER BY poll) AS low
      FROM ({_GROUP_POLLS}) group_polls) seeks
WHERE event = 'seek' AND low < high
"""
"""Ranges of offsets that a member skipped by a seek of its own."""

_BEYOND = """
FROM commits JOIN partitions ON partitions.topic_id = commits.topic_id
  AND partitions.partition = commits.partition
JOIN grps ON grps.grp = commits.`group`
JOIN (SELECT slots.p, BIT_OR(slots.grps) AS grps, MAX(slots.off) AS high FROM slots
      WHERE slots.grps <> 0 GROUP BY slots.p) deliveries ON deliveries.p = partitions.p
        AND (deliveries.grps & grps.bit) <> 0
WHERE commits.outcome = 'ok' AND COALESCE(commits.member_epoch, commits.generation) >= 0
  AND partitions.gone = 0
  AND COALESCE(partitions.log_end, partitions.seen_end) IS NOT NULL
  AND commits.offset > deliveries.high + 1 AND commits.offset > partitions.committed_end
  AND commits.offset > COALESCE(partitions.log_end, 0)
"""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "beyond the end":
        return (
            f"{row['client']} committed {place(row)} for {row['grp']}, though the partition ends "
            f"at {row['top']}."
        )
    return (
        f"{row['grp']} committed up to {row['top']}, but no member ever processed "
        f"{row['value_id']} at {place(row)}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A member of a group read each record below the group's highest commit, and no commit is
    beyond the end of the partition."""
    for partition in history.partitions:
        accepted = [row for row in partition.commits if row.outcome == "ok"]
        for group in {row.group for row in accepted}:
            group_commits = [row for row in accepted if row.group == group]
            members = history.members_of(group)
            processed = {
                (row.offset, row.value_id)
                for row in partition.reads
                if (row.client, row.session) in members
            }
            top = max(row.offset for row in group_commits)
            is_compacted = partition.is_compacted
            due = kept_records(partition) if is_compacted else partition.due_records
            for offset, value in due - processed:
                is_passed = partition.start <= offset < top
                if is_passed and not _is_skipped(partition, group, members, offset):
                    yield partition.violation("not processed", offset, value)
            read_to = max((offset for offset, _ in processed), default=None)
            ends = [read_to, partition.leader_log.high_watermark, partition.leader_log.log_end]
            ends += [final_pass.row.to_offset for final_pass in partition.final_passes]
            for row in group_commits:
                beyond = row.offset > max(end or 0 for end in ends) and row.offset - 1 != read_to
                is_member = is_number(row.generation) or is_number(row.member_epoch)
                if beyond and read_to is not None and is_member:
                    yield partition.violation("beyond the end", row.offset)


def _is_skipped(
    partition: Partition, group: str, members: set[tuple[str, int]], offset: int
) -> bool:
    """Whether a group began behind an offset, or a member skipped it by a seek."""
    polls = [row for row in partition.polls if (row.client, row.session) in members]
    known = [row.position_before for row in polls if row.position_before is not None]
    if known:
        known += [
            row.offset
            for row in partition.commit_reads
            if row.group == group and row.outcome == "ok" and is_number(row.offset)
        ]
    if known and offset < min(known):
        return True
    for member in members:
        member_polls = sorted(
            (row for row in polls if (row.client, row.session) == member), key=lambda row: row.poll
        )
        for before, row in pairwise(member_polls):
            places = (before.position_after, row.position_before)
            if row.event == "seek" and None not in places and places[0] <= offset < places[1]:
                return True
    return False


GUARANTEE = Guarantee(
    name="commit_beyond_processed",
    rank=40,
    about="a group committed past a record that none of its members processed",
    promise="A consumer that commits after processing sees every record at least once.",
    source="Kafka documentation, 4.6 Message Delivery Semantics; KafkaConsumer, Manual Offset "
    "Control",
    sub_kinds={
        "not processed": (
            "a visible record below an acknowledged commit was read by no member of the group. A "
            "client is a member if it names the group, was assigned something or committed in it. "
            "Records of transactions count once their commit was acknowledged, in compacted topics "
            "the last values of keys"
        ),
        "beyond the end": (
            "a member of a group that reads the partition commits an offset that no log, no final "
            "pass and no member ever had"
        ),
    },
    not_counted=(
        "Groups that commit before they process (permitted).",
        "Groups with a member whose journal is incomplete.",
        "Records below all positions that the group's members and coordinator reported "
        "(`auto.offset.reset=latest`), or that a member passed by a seek (event `seek`, not "
        "`reset`).",
        "Records below the begin of the final leader's log.",
    ),
    unused_evidence=(
        "Records that other readers received and that the final log has no more: they may "
        "have been deleted before the group came so far.",
    ),
    opportunities=f"SELECT COUNT(*) AS n {PASSED}",
    violations=f"""
SELECT 'not processed' AS sub_kind, due_records.p, due_records.off, highest_commits.at_ns,
  highest_commits.until_ns, highest_commits.grp, due_records.value_id, highest_commits.top,
  highest_commits.unclean_on, highest_commits.unclean_floor, highest_commits.lost_floor,
  highest_commits.losses_ns, (SELECT MAX(commits_before) FROM settings) AS before,
  CAST(NULL AS STRING) AS client
{_ROWS} LEFT JOIN ({_BEGUN}) group_starts ON group_starts.p = highest_commits.p
AND group_starts.grp = highest_commits.grp
{_BELOW} AND (due_records.grps & grps.bit) = 0 AND due_records.off >= COALESCE(group_starts.low, 0)
  AND NOT EXISTS (SELECT 1 FROM ({_SEEKS}) sought_ranges
                  WHERE sought_ranges.p = highest_commits.p
                    AND sought_ranges.grp = highest_commits.grp
                    AND due_records.off >= sought_ranges.low
                    AND due_records.off < sought_ranges.high)
UNION ALL
SELECT 'beyond the end', partitions.p, commits.offset, commits.invoke_ns, commits.complete_ns,
  commits.`group`, NULL, GREATEST(partitions.committed_end, COALESCE(partitions.log_end, 0)),
  partitions.unclean_on, partitions.unclean_floor, partitions.lost_floor, partitions.losses_ns, 0,
  commits.client
{_BEYOND}""",
    excuses=(
        Excuse(
            when="violation.before = 1",
            reason="the group commits before it processes: at most once",
            permits=(Permit.COMMITS_FIRST,),
        ),
        *LOSSES,
    ),
    explain=_explain,
    tie="finding.value_id, finding.grp, finding.client",
    excused_by_times=True,
    needs=("commits", "reads"),
    reads=(
        *(
            "slots",
            "committed",
            "keyed",
            "partitions",
            "damaged",
            "grps",
            "members",
            "settings",
            "polls",
        ),
        *("commits", "commit_reads", "mirrors"),
    ),
    reference=_reference,
)
