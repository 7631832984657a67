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

from urteil.harness.verify.guarantees.base import DUE, Excuse, Guarantee, place
from urteil.harness.verify.guarantees.losses import LOSSES
from urteil.harness.verify.reference import Partition, SmallHistory, Violation, is_number

_ROWS = f"""
FROM (SELECT q.p, c.`group` AS grp, MAX(c.offset) AS top, MIN(c.complete_ns) AS at_ns,
        MAX(c.complete_ns) AS until_ns, MAX(q.log_start) AS start, MAX(q.unclean_on) AS unclean_on,
        MAX(q.unclean_floor) AS unclean_floor, MAX(q.lost_floor) AS lost_floor,
        MAX(q.spoilt_ns) AS spoilt_ns
      FROM commits c JOIN parts q ON q.topic_id = c.topic_id AND q.partition = c.partition
      WHERE c.outcome = 'ok' AND q.compacted = 0 AND q.p NOT IN (SELECT m.p FROM mirrors m)
      GROUP BY q.p, c.`group`) k
JOIN {DUE} s ON s.p = k.p JOIN grps b ON b.grp = k.grp
"""
_BELOW = """
WHERE s.off < k.top AND s.off >= k.start
  AND NOT EXISTS (SELECT 1 FROM damaged d JOIN members m ON m.client = d.client
                  WHERE (m.bits & b.bit) <> 0)
"""
PASSED = f"{_ROWS} {_BELOW}"

_STOOD = """
SELECT q.p, b.grp, e.client, e.session, e.poll, e.event, e.position_before, e.position_after
FROM polls e JOIN parts q ON q.topic_id = e.topic_id AND q.partition = e.partition
JOIN members m ON m.client = e.client AND m.session = e.session
JOIN grps b ON (m.bits & b.bit) <> 0
"""
_BEGUN = f"""
SELECT g.p, g.grp, CASE WHEN a.low < g.low THEN a.low ELSE g.low END AS low
FROM (SELECT e.p, e.grp, MIN(e.position_before) AS low FROM ({_STOOD}) e GROUP BY e.p, e.grp) g
LEFT JOIN (SELECT q.p, r.`group` AS grp, MIN(r.offset) AS low
           FROM commit_reads r JOIN parts q
             ON q.topic_id = r.topic_id AND q.partition = r.partition
           WHERE r.outcome = 'ok' AND r.offset >= 0 GROUP BY q.p, r.`group`) a
  ON a.p = g.p AND a.grp = g.grp
"""
"""Where a group began: the lowest offset that its members or its coordinator ever reported."""

_SOUGHT = f"""
SELECT l.p, l.grp, l.low, l.high
FROM (SELECT e.p, e.grp, e.event, e.position_before AS high, LAG(e.position_after) OVER (
        PARTITION BY e.client, e.session, e.p, e.grp ORDER BY e.poll) AS low
      FROM ({_STOOD}) e) l
WHERE l.event = 'seek' AND l.low < l.high
"""
"""What a member sought past, by its own choice."""

_BEYOND = """
FROM commits c JOIN parts q ON q.topic_id = c.topic_id AND q.partition = c.partition
JOIN grps b ON b.grp = c.`group`
JOIN (SELECT s.p, BIT_OR(s.grps) AS grps, MAX(s.off) AS high FROM slots s
      WHERE s.grps <> 0 GROUP BY s.p) r ON r.p = q.p AND (r.grps & b.bit) <> 0
WHERE c.outcome = 'ok' AND c.generation >= 0 AND q.gone = 0
  AND COALESCE(q.log_end, q.seen_end) IS NOT NULL AND c.offset > r.high + 1
  AND c.offset > q.committed_end AND c.offset > COALESCE(q.log_end, 0)
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
    """A member of a group read each record below the group's highest commit, and no commit lies
    beyond the end of the partition."""
    for partition in history.partitions:
        accepted = [row for row in partition.commits if row.outcome == "ok"]
        for group in {row.group for row in accepted}:
            own = [row for row in accepted if row.group == group]
            members = history.members_of(group)
            processed = {
                (row.offset, row.value_id)
                for row in partition.reads
                if (row.client, row.session) in members
            }
            top = max(row.offset for row in own)
            if not partition.is_compacted:
                for offset, value in partition.due - processed:
                    is_passed = partition.start <= offset < top
                    if is_passed and not _is_passed_over(partition, group, members, offset):
                        yield partition.violation("not processed", offset, value)
            read_to = max((offset for offset, _ in processed), default=None)
            ends = [read_to, partition.leader_log.high_watermark, partition.leader_log.log_end]
            ends += [one.row.to_offset for one in partition.final_passes]
            for row in own:
                beyond = row.offset > max(end or 0 for end in ends) and row.offset - 1 != read_to
                if beyond and read_to is not None and is_number(row.generation):
                    yield partition.violation("beyond the end", row.offset)


def _is_passed_over(
    partition: Partition, group: str, members: set[tuple[str, int]], offset: int
) -> bool:
    """Whether a group began behind an offset, or a member sought past it."""
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
    for who in members:
        own = sorted(
            (row for row in polls if (row.client, row.session) == who), key=lambda row: row.poll
        )
        for before, row in pairwise(own):
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
            "Records of transactions count once their commit was acknowledged"
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
    opportunities=f"SELECT COUNT(*) AS n {PASSED}",
    violations=f"""
SELECT 'not processed' AS sub_kind, s.p, s.off, k.at_ns, k.until_ns, k.grp, s.value_id, k.top,
  k.unclean_on, k.unclean_floor, k.lost_floor, k.spoilt_ns,
  (SELECT MAX(z.commits_before) FROM settings z) AS before, CAST(NULL AS STRING) AS client
{_ROWS} LEFT JOIN ({_BEGUN}) g ON g.p = k.p AND g.grp = k.grp
{_BELOW} AND (s.grps & b.bit) = 0 AND s.off >= COALESCE(g.low, 0)
  AND NOT EXISTS (SELECT 1 FROM ({_SOUGHT}) j
                  WHERE j.p = k.p AND j.grp = k.grp AND s.off >= j.low AND s.off < j.high)
UNION ALL
SELECT 'beyond the end', q.p, c.offset, c.invoke_ns, c.complete_ns, c.`group`, NULL,
  GREATEST(q.committed_end, COALESCE(q.log_end, 0)), q.unclean_on, q.unclean_floor, q.lost_floor,
  q.spoilt_ns, 0, c.client
{_BEYOND}""",
    excuses=(
        Excuse(
            when="x.before = 1",
            reason="the group commits before it processes: at most once",
        ),
        *LOSSES,
    ),
    explain=_explain,
    tie="j.value_id, j.grp, j.client",
    excused_by_times=True,
    needs=("commits", "reads"),
    reads=(
        *("slots", "committed", "parts", "damaged", "grps", "members", "settings", "polls"),
        *("commits", "commit_reads", "mirrors"),
    ),
    reference=_reference,
)
