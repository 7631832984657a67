"""A leader epoch starts at one offset on every replica that knows it, and its records are there.

OffsetForLeaderEpoch returns the same. Left out are compacted topics, and epochs that start at a
log's own start, because deletion moves these.

The epoch of a record that a reader received is compared with the final leader's log. It is never an
epoch that did not exist. Where no committed record may be lost, it is never older than in that log
either. A response about the end of an older epoch is compared with the final leader's log if that
log knows the epoch in which the broker led: up to there both are equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import LEADER_EPOCHS
from urteil.harness.verify.guarantees.base import Guarantee, place, union
from urteil.harness.verify.reference import Partition, SmallHistory, Violation

_JUDGED = """
FROM epochs JOIN partitions ON partitions.p = epochs.p WHERE partitions.compacted = 0
  AND epochs.start > epochs.log_start
"""
_LOGGED_EPOCHS = """
(SELECT epochs.p, epochs.broker, epochs.epoch, epochs.start,
   COALESCE(LEAD(epochs.start) OVER (PARTITION BY epochs.p, epochs.broker ORDER BY epochs.epoch),
            logs_p.log_end)
     AS next_start
 FROM epochs JOIN logs_p ON logs_p.p = epochs.p AND logs_p.broker = epochs.broker)
"""
"""The epochs that each log knows, each with its start and the start of the next one there."""

_EPOCH_ANSWERS = """
(SELECT answers.p, answers.node, answers.requested_epoch, answers.offset, answers.invoke_ns,
   answers.complete_ns, MIN(next_epochs.start) AS next_start
 FROM answers JOIN partitions ON partitions.p = answers.p AND partitions.compacted = 0
 JOIN epochs led_epochs ON led_epochs.p = answers.p AND led_epochs.broker = partitions.final_leader
   AND led_epochs.epoch = answers.current_epoch
 JOIN epochs next_epochs ON next_epochs.p = answers.p
   AND next_epochs.broker = partitions.final_leader AND next_epochs.epoch > answers.requested_epoch
   AND next_epochs.epoch <= answers.current_epoch
 WHERE answers.kind = 'epoch' AND answers.error IS NULL AND answers.offset >= 0
   AND answers.offset > next_epochs.log_start AND next_epochs.start > next_epochs.log_start
 GROUP BY answers.p, answers.node, answers.requested_epoch, answers.offset, answers.invoke_ns,
   answers.complete_ns)
"""
"""Responses of leaders about former epochs, with the start of the next epoch in the final leader's
log."""

_SHOWN = """
(SELECT highest_reads.p, highest_reads.leader_epoch, highest_reads.high, highest_reads.kept,
   MAX(CASE WHEN epochs.start <= highest_reads.high THEN epochs.epoch END) AS high_epoch,
   MAX(last_epochs.epoch) AS last_epoch
 FROM (SELECT partitions.p, partitions.final_leader, reads.leader_epoch, MAX(reads.offset) AS high,
         CASE WHEN partitions.compacted = 1 OR reads.read_ns < partitions.losses_ns THEN 0
              ELSE 1 END AS kept
       FROM reads JOIN partitions ON partitions.topic_id = reads.topic_id
         AND partitions.partition = reads.partition
       JOIN logs_p ON logs_p.p = partitions.p AND logs_p.broker = partitions.final_leader
       WHERE reads.leader_epoch >= 0 AND reads.offset >= logs_p.log_start
         AND reads.offset < logs_p.log_end
       GROUP BY partitions.p, partitions.final_leader, reads.leader_epoch,
         CASE WHEN partitions.compacted = 1 OR reads.read_ns < partitions.losses_ns THEN 0
              ELSE 1 END) highest_reads
 JOIN epochs ON epochs.p = highest_reads.p AND epochs.broker = highest_reads.final_leader
 LEFT JOIN (SELECT p, MAX(leader_epoch) AS epoch FROM state_spans spans GROUP BY p) last_epochs
   ON last_epochs.p = highest_reads.p
 GROUP BY highest_reads.p, highest_reads.leader_epoch, highest_reads.high, highest_reads.kept)
"""
"""The highest offset that readers received with an epoch, the epoch of that offset in the final
leader's log, and the partition's last epoch."""

_TWO_STARTS = f"""
SELECT 'two starts' AS sub_kind, epochs.p, MIN(epochs.start) AS off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, epochs.epoch AS leader_epoch, MAX(epochs.start) AS other_off,
  CAST(NULL AS INT) AS other_epoch
{_JUDGED} GROUP BY epochs.p, epochs.epoch HAVING MIN(epochs.start) <> MAX(epochs.start)"""
"""Epochs that start at different offsets on different replicas."""

_FORGOTTEN = f"""
SELECT 'forgotten', used_epochs.p, MIN(used_epochs.start), NULL, NULL, used_epochs.epoch,
  logs_p.broker, NULL
FROM {_LOGGED_EPOCHS} used_epochs JOIN partitions ON partitions.p = used_epochs.p
  AND partitions.compacted = 0 AND used_epochs.start < partitions.committed_end
  AND used_epochs.start < partitions.agreed_end
JOIN logs_p ON logs_p.p = used_epochs.p AND logs_p.log_start <= used_epochs.start
  AND logs_p.log_end > used_epochs.start AND logs_p.epochs_known = 1
LEFT JOIN epochs ON epochs.p = logs_p.p AND epochs.broker = logs_p.broker
  AND epochs.epoch = used_epochs.epoch
WHERE used_epochs.next_start > used_epochs.start AND epochs.p IS NULL GROUP BY used_epochs.p,
  used_epochs.epoch, logs_p.broker"""
"""Replicas that hold the start offset of an epoch and do not know the epoch."""

_WRONG_END = f"""
SELECT 'told', epoch_answers.p, epoch_answers.offset, epoch_answers.invoke_ns,
  epoch_answers.complete_ns, epoch_answers.requested_epoch, epoch_answers.next_start, NULL
FROM {_EPOCH_ANSWERS} epoch_answers WHERE epoch_answers.offset <> epoch_answers.next_start"""
"""Responses with another end of an epoch than the final leader's log has."""

_OUTSIDE = """
SELECT 'outside', extents.p,
  MIN(CASE WHEN epochs.epoch = extents.leader_epoch THEN extents.low ELSE extents.high END), NULL,
  NULL, extents.leader_epoch, MIN(epochs.start), MIN(epochs.epoch)
FROM epoch_extents extents JOIN partitions ON partitions.p = extents.p
  AND partitions.final_leader = extents.broker
JOIN epochs ON epochs.p = extents.p AND epochs.broker = extents.broker
WHERE (epochs.epoch = extents.leader_epoch AND extents.low < epochs.start)
  OR (epochs.epoch > extents.leader_epoch AND extents.high >= epochs.start)
GROUP BY extents.p, extents.leader_epoch"""
"""Records of the final leader's log before their epoch's start, or in a later epoch."""

_UNKNOWN_EPOCH = """
SELECT 'of none', extents.p, extents.low, NULL, NULL, extents.leader_epoch, NULL, NULL
FROM epoch_extents extents JOIN partitions ON partitions.p = extents.p
  AND partitions.final_leader = extents.broker AND partitions.compacted = 0
JOIN (SELECT epochs.p, epochs.broker, MIN(epochs.start) AS start FROM epochs GROUP BY epochs.p,
        epochs.broker) first_epochs
  ON first_epochs.p = extents.p AND first_epochs.broker = extents.broker
    AND first_epochs.start <= extents.low
LEFT JOIN epochs ON epochs.p = extents.p AND epochs.broker = extents.broker
  AND epochs.epoch = extents.leader_epoch
WHERE epochs.p IS NULL AND extents.n > 0 AND extents.leader_epoch >= 0"""
"""Records of the final leader's log with an epoch that the log does not know."""

_READ = f"""
SELECT 'read', p, high, NULL, NULL, leader_epoch, NULL, high_epoch
FROM {_SHOWN} shown_epochs
WHERE (kept = 1 AND high_epoch > leader_epoch) OR leader_epoch > last_epoch"""
"""Reads with an epoch that had ended below their offset, or that never existed."""


def _explain(row: Mapping[str, Any]) -> str:
    epoch = row["leader_epoch"]
    if row["sub_kind"] == "forgotten":
        return (
            f"Leader epoch {epoch} starts at {place(row)}, but broker {row['other_off']}, whose "
            "log holds that offset, knows nothing of it."
        )
    if row["sub_kind"] == "told":
        return (
            f"A leader returned {row['off']} as the end of leader epoch {epoch} of {row['topic']}-"
            f"{row['partition']}; by the log it is {row['other_off']}."
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
            f"A reader received the record at {place(row)} with leader epoch {epoch}; by the "
            f"final leader's log it is of epoch {row['other_epoch']}."
        )
    return (
        f"Leader epoch {epoch} starts at {place(row)} on one replica and at "
        f"{row['other_off']} on another."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """All logs that know an epoch have one start of it, a log that has an epoch's first offset
    knows the epoch, and the records of the final leader and of readers are in their epochs.

    Left out: responses about former epochs.
    """
    for partition in (partition for partition in history.partitions if partition.logs):
        if not partition.is_compacted:
            yield from _two_starts(partition)
            yield from _forgotten_epochs(partition)
        yield from _misplaced_records(partition)
        yield from _misread_epochs(partition)


def _two_starts(partition: Partition) -> Iterator[Violation]:
    starts: dict[int, set[int]] = {}
    for log in partition.logs:
        for epoch, start in partition.epochs_of(log).items():
            if start > (log.log_start or 0):
                starts.setdefault(epoch, set()).add(start)
    yield from (partition.violation("two starts", min(known)) for known in starts.values()
                if len(known) > 1)  # fmt: skip


def _forgotten_epochs(partition: Partition) -> Iterator[Violation]:
    for log in (log for log in partition.logs if log.epochs is not None):
        begun: dict[int, list[int]] = {}
        for other in partition.logs:
            epochs = partition.epochs_of(other)
            for epoch, start in epochs.items():
                later = [number for number in epochs if number > epoch]
                end = epochs[min(later)] if later else other.log_end
                is_held = (log.log_start or 0) <= start < min(log.log_end, partition.committed_end)
                if is_held and start < end and epoch not in partition.epochs_of(log):
                    begun.setdefault(epoch, []).append(start)
        yield from (partition.violation("forgotten", min(starts)) for starts in begun.values())


def _misplaced_records(partition: Partition) -> Iterator[Violation]:
    epochs = partition.epochs_of(partition.leader_log)
    rows = [
        row for row in partition.log if partition.start <= row.offset < partition.leader_log.log_end
    ]
    for epoch in {row.leader_epoch for row in rows}:
        offsets = [row.offset for row in rows if row.leader_epoch == epoch]
        later = [start for number, start in epochs.items() if number > epoch]
        if epoch in epochs and min(offsets) < epochs[epoch]:
            yield partition.violation("outside", min(offsets))
        elif later and max(offsets) >= min(later):
            yield partition.violation("outside", max(offsets))
        is_after = epochs and min(epochs.values()) <= min(offsets)
        if is_after and epoch >= 0 and epoch not in epochs and not partition.is_compacted:
            yield partition.violation("of none", min(offsets))


def _misread_epochs(partition: Partition) -> Iterator[Violation]:
    epochs = partition.epochs_of(partition.leader_log)
    last = max((state.leader_epoch for state in partition.versions), default=None)
    reads = [row for row in partition.reads
             if row.leader_epoch is not None and row.leader_epoch >= 0
             and partition.start <= row.offset < partition.leader_log.log_end]  # fmt: skip
    for epoch in {read.leader_epoch for read in reads} if epochs else ():
        offset = max(read.offset for read in reads if read.leader_epoch == epoch)
        is_over = any(number > epoch and start <= offset for number, start in epochs.items())
        if (is_over and not partition.is_compacted) or (last is not None and epoch > last):
            yield partition.violation("read", offset)


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
    unused_evidence=(
        "Records of replicas other than the final leader, outside their epochs: "
        "`replica_divergence` compares them with the leader's.",
    ),
    requires=(LEADER_EPOCHS,),
    opportunities=f"""
SELECT SUM(opportunities.n) AS n FROM (
  SELECT COUNT(*) AS n FROM (SELECT epochs.p, epochs.epoch {_JUDGED}
                             GROUP BY epochs.p, epochs.epoch HAVING COUNT(*) > 1) shared_epochs
  UNION ALL SELECT COUNT(*) FROM {_EPOCH_ANSWERS} epoch_answers) opportunities""",
    violations=union(_TWO_STARTS, _FORGOTTEN, _WRONG_END, _OUTSIDE, _UNKNOWN_EPOCH, _READ),
    explain=_explain,
    tie="finding.leader_epoch, finding.other_off",
    needs=("logs",),
    reads=(
        "epoch_extents",
        "partitions",
        "answers",
        "state_spans",
        "epochs",
        "logs_p",
        "reads",
        "partitions.losses_ns",
    ),
    rests_on=("logs",),
    reference=_reference,
    reference_covers=("two starts", "forgotten", "outside", "of none", "read"),
)
