"""A leader epoch starts at one offset on every replica that knows it, and its records lie there.

OffsetForLeaderEpoch returns the same. Left out are compacted topics, and epochs that start at a
log's own start, because deletion moves these.

The epoch of a record that a reader received is compared with the final leader's log. It is never
one that did not exist. Where no committed record may be lost, it is never older than in that log
either. A response about the end of an older epoch is compared with the final leader's log where
that log knows the epoch in which the broker led: up to there both are equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import LEADER_EPOCHS
from urteil.harness.verify.guarantees.base import Guarantee, place, union
from urteil.harness.verify.reference import Partition, SmallHistory, Violation

_JUDGED = """
FROM epochs e JOIN parts q ON q.p = e.p WHERE q.compacted = 0 AND e.start > e.log_start
"""
_USED = """
(SELECT u.p, u.broker, u.epoch, u.start,
   COALESCE(LEAD(u.start) OVER (PARTITION BY u.p, u.broker ORDER BY u.epoch), m.log_end)
     AS next_start
 FROM epochs u JOIN logs_p m ON m.p = u.p AND m.broker = u.broker)
"""
"""Epochs by the logs that know them, each with the end of what it wrote there."""

_TOLD = """
(SELECT a.p, a.node, a.asked_epoch, a.offset, a.invoke_ns, a.complete_ns, MIN(n.start) AS next_start
 FROM answers a JOIN parts q ON q.p = a.p AND q.compacted = 0
 JOIN epochs l ON l.p = a.p AND l.broker = q.final_leader AND l.epoch = a.led_epoch
 JOIN epochs n ON n.p = a.p AND n.broker = q.final_leader AND n.epoch > a.asked_epoch
   AND n.epoch <= a.led_epoch
 WHERE a.kind = 'epoch' AND a.error IS NULL AND a.offset >= 0
   AND a.offset > n.log_start AND n.start > n.log_start
 GROUP BY a.p, a.node, a.asked_epoch, a.offset, a.invoke_ns, a.complete_ns)
"""
"""Responses of leaders about former epochs, and where the next one begins by the final log."""

_SHOWN = """
(SELECT h.p, h.leader_epoch, h.high, h.kept,
   MAX(CASE WHEN e.start <= h.high THEN e.epoch END) AS high_epoch,
   MAX(z.epoch) AS last_epoch
 FROM (SELECT q.p, q.final_leader, r.leader_epoch, MAX(r.offset) AS high,
         CASE WHEN q.compacted = 1 OR r.read_ns < q.spoilt_ns THEN 0 ELSE 1 END AS kept
       FROM reads r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
       JOIN logs_p m ON m.p = q.p AND m.broker = q.final_leader
       WHERE r.leader_epoch >= 0 AND r.offset >= m.log_start AND r.offset < m.log_end
       GROUP BY q.p, q.final_leader, r.leader_epoch,
         CASE WHEN q.compacted = 1 OR r.read_ns < q.spoilt_ns THEN 0 ELSE 1 END) h
 JOIN epochs e ON e.p = h.p AND e.broker = h.final_leader
 LEFT JOIN (SELECT s.p, MAX(s.leader_epoch) AS epoch FROM spans s GROUP BY s.p) z ON z.p = h.p
 GROUP BY h.p, h.leader_epoch, h.high, h.kept)
"""
"""The last offset at which readers were shown an epoch, the one that it is of by the log, and the
last one there was."""

_TWO_STARTS = f"""
SELECT 'two starts' AS sub_kind, e.p, MIN(e.start) AS off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, e.epoch AS leader_epoch, MAX(e.start) AS other_off,
  CAST(NULL AS INT) AS other_epoch
{_JUDGED} GROUP BY e.p, e.epoch HAVING MIN(e.start) <> MAX(e.start)"""
"""Epochs that start at different offsets on different replicas."""

_FORGOTTEN = f"""
SELECT 'forgotten', k.p, MIN(k.start), NULL, NULL, k.epoch, l.broker, NULL
FROM {_USED} k JOIN parts q ON q.p = k.p AND q.compacted = 0
  AND k.start < q.committed_end AND k.start < q.agreed_end
JOIN logs_p l ON l.p = k.p AND l.log_start <= k.start AND l.log_end > k.start AND l.epochs_known = 1
LEFT JOIN epochs x ON x.p = l.p AND x.broker = l.broker AND x.epoch = k.epoch
WHERE k.next_start > k.start AND x.p IS NULL GROUP BY k.p, k.epoch, l.broker"""
"""Replicas that hold the start offset of an epoch and do not know the epoch."""

_WRONG_END = f"""
SELECT 'told', t.p, t.offset, t.invoke_ns, t.complete_ns, t.asked_epoch, t.next_start, NULL
FROM {_TOLD} t WHERE t.offset <> t.next_start"""
"""Responses with another end of an epoch than the final leader's log has."""

_OUTSIDE = """
SELECT 'outside', h.p, MIN(CASE WHEN e.epoch = h.leader_epoch THEN h.low ELSE h.high END), NULL,
  NULL, h.leader_epoch, MIN(e.start), MIN(e.epoch)
FROM epoch_extents h JOIN parts q ON q.p = h.p AND q.final_leader = h.broker
JOIN epochs e ON e.p = h.p AND e.broker = h.broker
WHERE (e.epoch = h.leader_epoch AND h.low < e.start)
  OR (e.epoch > h.leader_epoch AND h.high >= e.start)
GROUP BY h.p, h.leader_epoch"""
"""Records of the final leader's log before their epoch's start, or in a later epoch."""

_OF_NONE = """
SELECT 'of none', h.p, h.low, NULL, NULL, h.leader_epoch, NULL, NULL
FROM epoch_extents h JOIN parts q ON q.p = h.p AND q.final_leader = h.broker AND q.compacted = 0
JOIN (SELECT b.p, b.broker, MIN(b.start) AS start FROM epochs b GROUP BY b.p, b.broker) b
  ON b.p = h.p AND b.broker = h.broker AND b.start <= h.low
LEFT JOIN epochs e ON e.p = h.p AND e.broker = h.broker AND e.epoch = h.leader_epoch
WHERE e.p IS NULL AND h.n > 0 AND h.leader_epoch >= 0"""
"""Records of the final leader's log with an epoch that the log does not know."""

_READ = f"""
SELECT 'read', h.p, h.high, NULL, NULL, h.leader_epoch, NULL, h.high_epoch
FROM {_SHOWN} h
WHERE (h.kept = 1 AND h.high_epoch > h.leader_epoch) OR h.leader_epoch > h.last_epoch"""
"""Reads with an epoch that was over, or that never existed."""


def _explain(row: Mapping[str, Any]) -> str:
    epoch = row["leader_epoch"]
    if row["sub_kind"] == "forgotten":
        return (
            f"Leader epoch {epoch} starts at {place(row)}, but broker {row['other_off']}, whose "
            "log holds that offset, knows nothing of it."
        )
    if row["sub_kind"] == "told":
        return (
            f"Asked for the end of leader epoch {epoch} of {row['topic']}-{row['partition']}, a "
            f"leader answered {row['off']}; by the log it is {row['other_off']}."
        )
    if row["sub_kind"] == "outside":
        other = "it" if row["other_epoch"] == epoch else f"epoch {row['other_epoch']}"
        return (
            f"The record at {place(row)} is of leader epoch {epoch}, though by the log that holds "
            f"the record {other} began at {row['other_off']}."
        )
    if row["sub_kind"] == "of none":
        return (
            f"The record at {place(row)} is of leader epoch {epoch}, of which the log that holds "
            "it knows nothing."
        )
    if row["sub_kind"] == "read":
        return (
            f"A reader was shown the record at {place(row)} as one of leader epoch {epoch}; by the "
            f"final leader's log it is of epoch {row['other_epoch']}."
        )
    return (
        f"Leader epoch {epoch} starts at {place(row)} on one replica and at "
        f"{row['other_off']} on another."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """All logs that know an epoch know one start of it, a log that has an epoch's first offset
    knows the epoch, and the final leader's records are in their epochs, also for readers.

    Left out: answers about former epochs.
    """
    for one in (one for one in history.partitions if one.logs):
        if not one.is_compacted:
            yield from _two_starts(one)
            yield from _forgotten(one)
        yield from _strays(one)
        yield from _misread(one)


def _two_starts(one: Partition) -> Iterator[Violation]:
    starts: dict[int, set[int]] = {}
    for log in one.logs:
        for epoch, start in one.epochs_of(log).items():
            if start > (log.log_start or 0):
                starts.setdefault(epoch, set()).add(start)
    yield from (one.violation("two starts", min(known)) for known in starts.values()
                if len(known) > 1)  # fmt: skip


def _forgotten(one: Partition) -> Iterator[Violation]:
    for log in (log for log in one.logs if log.epochs is not None):
        begun: dict[int, list[int]] = {}
        for other in one.logs:
            epochs = one.epochs_of(other)
            for epoch, start in epochs.items():
                later = [number for number in epochs if number > epoch]
                end = epochs[min(later)] if later else other.log_end
                is_held = (log.log_start or 0) <= start < min(log.log_end, one.committed_end)
                if is_held and start < end and epoch not in one.epochs_of(log):
                    begun.setdefault(epoch, []).append(start)
        yield from (one.violation("forgotten", min(starts)) for starts in begun.values())


def _strays(one: Partition) -> Iterator[Violation]:
    epochs = one.epochs_of(one.leader_log)
    rows = [row for row in one.log if one.start <= row.offset < one.leader_log.log_end]
    for epoch in {row.leader_epoch for row in rows}:
        offsets = [row.offset for row in rows if row.leader_epoch == epoch]
        later = [start for number, start in epochs.items() if number > epoch]
        if epoch in epochs and min(offsets) < epochs[epoch]:
            yield one.violation("outside", min(offsets))
        elif later and max(offsets) >= min(later):
            yield one.violation("outside", max(offsets))
        is_after = epochs and min(epochs.values()) <= min(offsets)
        if is_after and epoch >= 0 and epoch not in epochs and not one.is_compacted:
            yield one.violation("of none", min(offsets))


def _misread(one: Partition) -> Iterator[Violation]:
    epochs = one.epochs_of(one.leader_log)
    last = max((state.leader_epoch for state in one.versions), default=None)
    reads = [row for row in one.reads if row.leader_epoch is not None and row.leader_epoch >= 0
             and one.start <= row.offset < one.leader_log.log_end]  # fmt: skip
    for epoch in {read.leader_epoch for read in reads} if epochs else ():
        offset = max(read.offset for read in reads if read.leader_epoch == epoch)
        is_over = any(number > epoch and start <= offset for number, start in epochs.items())
        if (is_over and not one.is_compacted) or (last is not None and epoch > last):
            yield one.violation("read", offset)


GUARANTEE = Guarantee(
    name="epoch_lineage",
    rank=10,
    about="one leader epoch starts at two offsets",
    promise="The leader epoch sequence file maps each leader epoch to the offset at which it "
    "began, and replicas agree on this lineage.",
    source="KIP-101; KIP-279",
    sub_kinds={
        "two starts": "replicas have two start offsets of one epoch",
        "forgotten": "a log has the first offset of an epoch and does not know it",
        "told": (
            "a leader answered OffsetForLeaderEpoch for a past epoch with another end than the "
            "final leader's log has"
        ),
        "outside": (
            "the final leader has a record below the start of its epoch, or beyond the start of a "
            "later one"
        ),
        "of none": "it has a record of an epoch that its log does not know",
        "read": (
            "a reader got a record under an older epoch than the final leader's log has there, or "
            "under one that never existed"
        ),
    },
    not_counted=(
        "Starts at a log's own start, and records of unknown epochs below the first start that a "
        "log knows.",
        "Answers in an epoch that the final leader does not know.",
        "Reads under an older epoch in compacted topics: a follower without an epoch's first "
        "records notes a later start.",
        "Reads where an unclean election or a disk destroyed committed records.",
    ),
    requires=(LEADER_EPOCHS,),
    opportunities=f"""
SELECT SUM(o.n) AS n FROM (
  SELECT COUNT(*) AS n FROM (SELECT e.p, e.epoch {_JUDGED}
                             GROUP BY e.p, e.epoch HAVING COUNT(*) > 1) k
  UNION ALL SELECT COUNT(*) FROM {_TOLD} t) o""",
    violations=union(_TWO_STARTS, _FORGOTTEN, _WRONG_END, _OUTSIDE, _OF_NONE, _READ),
    explain=_explain,
    tie="j.leader_epoch, j.other_off",
    needs=("logs",),
    reads=(
        "epoch_extents",
        "parts",
        "answers",
        "spans",
        "epochs",
        "logs_p",
        "reads",
        "parts.spoilt_ns",
    ),
    rests_on=("logs",),
    reference=_reference,
    reference_covers=("two starts", "forgotten", "outside", "of none", "read"),
)
