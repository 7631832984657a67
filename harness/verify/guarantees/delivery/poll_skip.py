"""A consumer skips no record that was available to it.

A gap in the records that a consumer received, without seek, reset or rebalance, holds nothing
visible. The same applies between the committed offset that a member fetched after a rebalance
and its first record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DUE, OTHER_DUE, SLOT, Guarantee, place
from urteil.harness.verify.guarantees.compaction.keyed_sends import kept_records
from urteil.harness.verify.guarantees.losses import LOSSES
from urteil.harness.verify.limits import BUCKET
from urteil.harness.verify.reference import Partition, Row, SmallHistory, Violation

NO_EVENT = """
NOT EXISTS (SELECT 1 FROM polls LEFT JOIN partitions ON polls.topic_id = partitions.topic_id
            AND polls.partition = partitions.partition
            WHERE polls.event IS NOT NULL AND polls.client = gaps.client
              AND polls.session = gaps.session AND (partitions.p = gaps.p OR polls.topic_id IS NULL
                  OR polls.partition IS NULL)
              AND polls.poll <= gaps.poll
              AND (polls.poll >= gaps.prev_poll
                   OR (polls.complete_ns >= gaps.begin_ns
                       AND COALESCE(polls.position_after, -1) <> gaps.prev_off + 1)))
AND NOT EXISTS (SELECT 1 FROM assignments JOIN partitions
                  ON assignments.topic_id = partitions.topic_id
                AND assignments.partition = partitions.partition
                WHERE assignments.client = gaps.client AND assignments.session = gaps.session
                  AND partitions.p = gaps.p
                  AND assignments.at_ns >= gaps.prev_read_ns AND assignments.at_ns <= gaps.read_ns)
AND COALESCE(gaps.generation, -1) = COALESCE(gaps.prev_generation, -1)
"""
"""No seek, reset or rebalance happened between a read and the one before it, or the begin of its
pass. An event without a partition counts for all partitions. The event that moved the position to
the begin of the pass does not count."""

_BEFORE = f"""
SELECT /*+ SHUFFLE_HASH(gap_slots) */ gap_slots.slot, MAX(due_records.slot) AS before_slot
FROM (SELECT DISTINCT slot FROM gaps WHERE off > prev_off + 1) gap_slots
JOIN {DUE} due_records ON due_records.bucket = gap_slots.slot DIV {BUCKET}
  AND due_records.slot < gap_slots.slot
GROUP BY gap_slots.slot
"""
"""The slots after gaps, each with the last visible one before it, if there is one in its bucket."""

_RESUMED = """
SELECT first_reads.p, first_reads.client, first_reads.session, first_reads.pass, first_reads.poll,
  commit_reads.offset - 1 AS prev_off, first_reads.off, first_reads.value_id, first_reads.read_ns,
  MAX(commit_reads.complete_ns) AS prev_read_ns
FROM (SELECT reads.*, partitions.p, reads.offset AS off,
        ROW_NUMBER() OVER (PARTITION BY reads.client, reads.session,
        reads.pass, reads.generation, partitions.p ORDER BY reads.poll,
        reads.position_in_poll) AS n,
        LAG(COALESCE(reads.generation, -1)) OVER (PARTITION BY reads.client, reads.session,
            reads.pass, partitions.p
          ORDER BY reads.poll, reads.position_in_poll) AS prev_generation
      FROM reads JOIN partitions ON reads.topic_id = partitions.topic_id
        AND reads.partition = partitions.partition
      JOIN (SELECT DISTINCT client, session FROM commit_reads) fetchers
        ON fetchers.client = reads.client AND fetchers.session = reads.session) first_reads
JOIN commit_reads ON commit_reads.client = first_reads.client
  AND commit_reads.session = first_reads.session AND commit_reads.topic_id = first_reads.topic_id
  AND commit_reads.partition = first_reads.partition
  AND commit_reads.generation = first_reads.generation
WHERE first_reads.n = 1 AND COALESCE(first_reads.prev_generation, 0) >= 0
  AND commit_reads.outcome = 'ok' AND commit_reads.offset >= 0
  AND commit_reads.complete_ns <= first_reads.read_ns
  AND NOT EXISTS (SELECT 1 FROM polls WHERE polls.client = first_reads.client
                    AND polls.session = first_reads.session
                  AND polls.event IN ('seek', 'reset') AND polls.poll <= first_reads.poll
                  AND COALESCE(polls.complete_ns, commit_reads.invoke_ns) >= commit_reads.invoke_ns
                  AND COALESCE(polls.topic_id, first_reads.topic_id) = first_reads.topic_id
                  AND COALESCE(polls.partition, first_reads.partition) = first_reads.partition)
  AND NOT EXISTS (SELECT 1 FROM assignments
                  WHERE assignments.client = first_reads.client
                    AND assignments.session = first_reads.session
                    AND assignments.topic_id = first_reads.topic_id
                    AND assignments.partition = first_reads.partition
                  AND assignments.at_ns > commit_reads.complete_ns
                  AND assignments.at_ns <= first_reads.read_ns)
GROUP BY first_reads.p, first_reads.client, first_reads.session, first_reads.pass, first_reads.poll,
  commit_reads.offset, first_reads.off, first_reads.value_id, first_reads.read_ns
"""
"""First reads after an assignment; the predecessor is the committed offset that the member then
fetched. A new coordinator may assign a partition again in the same generation. Reads of a member
before it received the assignment are left out."""


def _describe_gap(row: Mapping[str, Any]) -> str:
    """The offsets before and after a gap; the first record of a pass has no record before it."""
    if row["prev_read_ns"] is None:
        return f"was at offset {row['prev_off'] + 1} and received offset {row['next_off']} next"
    return f"moved from offset {row['prev_off']} to {row['next_off']}"


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Between two consecutive records of one reader, unless it was moved, there is none that every
    reader must receive. In an imported history, all records that were read are visible.

    Left out: the first record of a member after a rebalance.
    """
    for partition in history.partitions:
        due = [row.offset for row in partition.log if _is_due(history, row)]
        part = history.parts_at.get((partition.topic, partition.partition))
        if part is not None and part.reads_are_log:
            due = [read.offset for read in partition.reads]
        if partition.is_compacted:
            due = [offset for offset, _ in kept_records(partition)]
        for read, before in steps(partition):
            if read.offset == before + 1:
                continue
            skipped = [offset for offset in due if before < offset < read.offset]
            if skipped:
                yield partition.violation("gap", max(skipped))


def _is_due(history: SmallHistory, row: Row) -> bool:
    """Whether every reader must receive the record: it is in no transaction, or its commit was
    acknowledged."""
    send = history.sends_by_value.get(row.value_id)
    if row.value_id is None or row.control or not row.transactional:
        return row.value_id is not None and not row.control
    if send is None or send.outcome != "ok" or len(history.records_of[row.value_id]) > 1:
        return False
    txn = history.txn_of.get((send.client, send.session, send.txn))
    return txn is not None and txn.outcome == "committed"


def steps(partition: Partition) -> Iterator[tuple[Row, int]]:
    """Each read with the offset before it in its pass, if nothing moved its reader in between."""
    passes: dict[tuple[object, ...], list[Row]] = {}
    for read in partition.reads:
        passes.setdefault((read.client, read.session, read["pass"]), []).append(read)
    for key, reads in passes.items():
        begun = [row for row in partition.passes
                 if (row.client, row.session, row["pass"]) == key]  # fmt: skip
        reads.sort(key=lambda read: (read.poll, read.position_in_poll))
        for earlier, read in zip([None, *reads], reads, strict=False):
            if earlier is not None or begun:
                offset = begun[0].from_offset - 1 if earlier is None else earlier.offset
                begin_ns = begun[0].begin_ns if earlier is None else None
                if not _is_moved(partition, earlier, read, offset, begin_ns):
                    yield read, offset


def _is_moved(
    partition: Partition, earlier: Row | None, read: Row, offset: int, begin_ns: int | None
) -> bool:
    """Whether a seek, a reset or a rebalance is between two reads, or between the begin of a pass
    and its first read. The event that moved the reader to the begin does not count."""
    session, place = (read.client, read.session), (partition.topic, partition.partition)
    since = read.poll if earlier is None else earlier.poll
    for poll in partition.history.polls_of.get(session, ()):
        is_here = None in (poll.topic, poll.partition) or (poll.topic, poll.partition) == place
        if poll.event and is_here:
            moved_to = -1 if poll.position_after is None else poll.position_after
            is_late = begin_ns is not None and (poll.complete_ns or 0) >= begin_ns
            if since <= poll.poll <= read.poll:
                return True
            if poll.poll <= read.poll and is_late and moved_to != offset + 1:
                return True
    if earlier is None:
        return False
    return read.generation != earlier.generation or any(
        (row.topic, row.partition) == place and earlier.read_ns <= row.at_ns <= read.read_ns
        for row in partition.history.assignments_of.get(session, ())
    )


GUARANTEE = Guarantee(
    name="poll_skip",
    rank=150,
    about="a consumer moved past a visible record without delivering it",
    promise="A consumer instance sees records in the order they are stored in the log, and its "
    "position advances over what it was given.",
    source="Kafka documentation, 1.1 Introduction: guarantees; 4.5 The Consumer",
    sub_kinds={
        "gap": "between two records that one consumer received",
        "after a rebalance": "between a member's fetched offset and its first record",
    },
    details=(
        "Records of a transaction whose commit was acknowledged count too.",
        "In a compacted topic the last values of keys count, if all sends of the key are resolved: "
        "no cleaner may take them.",
    ),
    not_counted=(
        "Moves after a seek, a reset or a rebalance.",
        "Markers and records of other transactions.",
        "Records whose own marker an unclean election or a disk destroyed, so that the producer's "
        "next marker aborts them.",
    ),
    unused_evidence=(
        "Records that other readers received and that the final log has no more: a reader "
        "whose position was deleted continues elsewhere, and not every client library "
        "reports that.",
    ),
    opportunities="""SELECT COUNT(*) AS n FROM reads JOIN partitions
  ON reads.topic_id = partitions.topic_id AND reads.partition = partitions.partition
    WHERE partitions.has_log + partitions.reads_are_log > 0""",
    violations=f"""
WITH fronts AS (
  SELECT p, bucket, MAX(last_slot) OVER (PARTITION BY p ORDER BY bucket
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS prior
  FROM (SELECT p, bucket, MAX(slot) AS last_slot
        FROM (SELECT slots.p, slots.bucket,
                CASE WHEN slots.visible = 1 AND partitions.compacted = 0 THEN slots.slot END AS slot
                FROM slots JOIN partitions ON partitions.p = slots.p
              UNION ALL SELECT p, bucket, slot FROM {OTHER_DUE} other_due) due_slots
        GROUP BY p, bucket) buckets)
SELECT 'gap' AS sub_kind, skips.p, skips.skipped % {SLOT} AS off,
  COALESCE(skips.prev_read_ns, skips.read_ns) AS at_ns, skips.read_ns AS until_ns,
  skips.client, skips.session, skips.pass, skips.poll, skips.prev_off, skips.off AS next_off,
  skips.value_id AS next_value_id, skips.prev_read_ns, partitions.unclean_on,
  partitions.unclean_floor, partitions.lost_floor, partitions.losses_ns
FROM (SELECT gaps.p, gaps.client, gaps.session, gaps.pass, gaps.poll, gaps.prev_off, gaps.off,
        gaps.value_id, gaps.read_ns,
        gaps.prev_read_ns, MIN(COALESCE(predecessors.before_slot, fronts.prior)) AS skipped
      FROM gaps LEFT JOIN ({_BEFORE}) predecessors ON predecessors.slot = gaps.slot
      LEFT JOIN fronts ON fronts.p = gaps.p AND fronts.bucket = gaps.slot DIV {BUCKET}
      WHERE gaps.off > gaps.prev_off + 1 AND {NO_EVENT}
      GROUP BY gaps.p, gaps.client, gaps.session, gaps.pass, gaps.poll, gaps.prev_off, gaps.off,
        gaps.value_id, gaps.read_ns,
        gaps.prev_read_ns) skips
JOIN partitions ON partitions.p = skips.p
WHERE skips.skipped > skips.p * {SLOT} + skips.prev_off
UNION ALL
SELECT 'after a rebalance', resumptions.p, MIN(due_records.off), MIN(resumptions.prev_read_ns),
  MIN(resumptions.read_ns), resumptions.client, resumptions.session, resumptions.pass,
  resumptions.poll, resumptions.prev_off, resumptions.off, resumptions.value_id,
  MIN(resumptions.prev_read_ns), MIN(partitions.unclean_on), MIN(partitions.unclean_floor),
  MIN(partitions.lost_floor), MIN(partitions.losses_ns)
FROM ({_RESUMED}) resumptions JOIN partitions ON partitions.p = resumptions.p
JOIN {DUE} due_records ON due_records.p = resumptions.p AND due_records.off > resumptions.prev_off
  AND due_records.off < resumptions.off
WHERE resumptions.off > resumptions.prev_off + 1 AND due_records.off >= partitions.log_start
GROUP BY resumptions.p, resumptions.client, resumptions.session, resumptions.pass, resumptions.poll,
  resumptions.prev_off, resumptions.off, resumptions.value_id""",
    excuses=LOSSES,
    explain=lambda row: (
        f"{row['client']} {_describe_gap(row)} of "
        f"{row['topic']}-{row['partition']}, past the visible record at {place(row)}."
    ),
    tie="finding.client, finding.pass, finding.poll",
    compares_times=True,
    needs=("reads",),
    reads=(
        *("slots", "committed", "keyed", "gaps", "partitions"),
        *("reads", "polls", "commit_reads", "assignments"),
    ),
    rests_on=("reads", "replicas", "polls", "passes", "clients", "commit_reads", "assignments"),
    reference=_reference,
    reference_covers=("gap",),
)
