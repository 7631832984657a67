"""The shared tables: the large evidence is shuffled once, and every check filters the results.

- `slots`: a row for each (partition, offset, value) that was acknowledged, read or is on a disk.
  `on_leader`: the final leader has it; without any logs, a reader received it.
- `records`: a row for each value: its send, if there is one, joined with the places where it is.
- `committed`: slots of the final leader's records in transactions whose commit was acknowledged,
  except where an unclean election or a disk took their marker.
- `irregular_values`: values that are not acknowledged, at another place, missing or not shown.
- `known_commits`, `unplaced`: what partitions without logs need (unplaced_sends.py).
- `record_counts`: counts of values that are alike in the columns of most checks; counts and
  measures are reduced to 0, 1 or NULL there.
- `write_attempts`: first and last time of the attempts to write, by partition and 100 ms.
- `shared`: slots with more than one row: the number of values seen there, and all their copies.
- `keyed`: sends to compacted topics, with the last of their key (`sure_off`: of those that were
  committed for certain, since they were acknowledged or read; `open_n`: the number of those whose
  fate or place is unknown). Sends of aborted transactions are left
  out; of a record that was sent several times without idempotence, the last copy counts.
- `gaps`: reads that do not follow their predecessor's offset, or the begin of their pass. `again`:
  a read at the place of its predecessor, so that the row exists twice.
- `ticks`: acknowledgements by partition and 100 ms, and the last offset with acks=all.
- `expected_outputs`: results that the run's application had to compute (expected_outputs.py).
- `epoch_extents`: for each log and leader epoch, the number of rows within the log, from which
  offset to which, and the number of rows beyond it or without required values.

Readers of committed records need not receive all records of transactions, and without logs it is
unknown which ones: there `mask`, the final passes that had to show a slot, has only other passes.
A slot is partition number << 48 | offset (impossible offsets are brought within bounds); a bucket
is 32 slots of one partition.

Rows are grouped by hashing, whose buffers have a fixed width. They therefore hold only numbers, and
of keys a hash (`rekeyed`: the value was seen under another key, or with another timestamp, than
its send has).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from urteil.harness.evidence.schema import TABLES
from urteil.harness.verify.engines.cuts import Cut
from urteil.harness.verify.engines.engine import Engine
from urteil.harness.verify.expected_outputs import EXPECTED_OUTPUTS, NO_EXPECTED_OUTPUTS
from urteil.harness.verify.limits import BUCKET, ENDED, REFUSED, TICK_NS, WAITS, epoch_of
from urteil.harness.verify.unplaced_sends import EMPTY, KNOWN_COMMITS, UNPLACED

SHIFT = 1 << 48
EPOCH = 1 << 32

REST = f"""
3 * CAST(COALESCE(replicas.batch_bytes, 0) AS BIGINT)
+ 5 * CAST(COALESCE(replicas.sequence, -1) AS BIGINT)
+ 7 * CAST(COALESCE(replicas.producer_epoch, -1) AS BIGINT)
+ 11 * (COALESCE(replicas.producer_id, -1) % {EPOCH})
+ 13 * (COALESCE(replicas.timestamp_ms, 0) % {EPOCH}) + CASE WHEN replicas.transactional THEN 17
    ELSE 0 END
+ CASE WHEN replicas.control = 'abort' THEN 19 WHEN replicas.control IS NOT NULL THEN 23
       ELSE 0 END"""
"""One number of what else a batch says, so that replicas which differ in any of it differ in it.
No producer is written as -1, as Kafka does, or as null."""

TIMES = 1 << 61


def _mark_sql(row: str) -> str:
    """One number of a record's key, and of its time where that is its client's."""
    return (
        f"CASE WHEN {row}.key IS NULL THEN 1 ELSE xxhash64({row}.key) DIV 2 END"
        f" + CASE WHEN partitions.sent_times = 1 THEN COALESCE({row}.timestamp_ms, 0) % {TIMES}"
        " ELSE 0 END"
    )


OBSERVATIONS = f"""
SELECT partitions.p * {SHIFT} + LEAST(sends.offset, {SHIFT} - 1) AS slot,
  sends.value_id AS value_id, 0 AS kind,
       CAST(NULL AS BIGINT) AS key_hash, CASE WHEN sends.acks = -1 THEN 4 ELSE 0 END AS flags,
       CAST(0 AS BIGINT) AS groups_or_ident, CAST(0 AS BIGINT) AS pass_or_base,
       CAST(0 AS BIGINT) AS read_ns_or_pid, CAST(NULL AS BIGINT) AS pseq
FROM sends JOIN partitions ON sends.topic_id = partitions.topic_id
  AND sends.partition = partitions.partition
WHERE sends.outcome = 'ok' AND sends.offset >= 0
UNION ALL
SELECT partitions.p * {SHIFT} + GREATEST(0, LEAST(reads.offset, {SHIFT} - 1)), reads.value_id, 1,
       {_mark_sql("reads")}, CASE WHEN reads.intact = FALSE THEN 1 ELSE 0 END
       + 2 * partitions.reads_are_log, COALESCE(members.bits, 0), COALESCE(pass_bits.bit, 0),
       reads.read_ns, NULL
FROM reads JOIN partitions ON reads.topic_id = partitions.topic_id
  AND reads.partition = partitions.partition
LEFT JOIN pass_bits ON pass_bits.client = reads.client AND pass_bits.session = reads.session
  AND pass_bits.pass = reads.pass
     AND pass_bits.p = partitions.p
LEFT JOIN members ON members.client = reads.client AND members.session = reads.session
UNION ALL
SELECT partitions.p * {SHIFT} + GREATEST(0, LEAST(replicas.offset, {SHIFT} - 1)), replicas.value_id,
  2,
       CASE WHEN replicas.value_id IS NOT NULL THEN {_mark_sql("replicas")} END,
       CASE WHEN replicas.intact = FALSE THEN 1 ELSE 0 END
       + CASE WHEN replicas.broker = partitions.final_leader THEN 2 ELSE 0 END
       + CASE WHEN replicas.transactional THEN 4 ELSE 0 END
       + CASE WHEN replicas.control = 'abort' THEN 16 WHEN replicas.control IS NOT NULL THEN 8
              ELSE 0 END,
       replicas.leader_epoch * {EPOCH} + ABS(replicas.batch_crc + {REST}) % {EPOCH},
       replicas.batch_base, replicas.producer_id,
       CASE WHEN replicas.sequence >= 0 THEN replicas.producer_epoch * {EPOCH} + replicas.sequence
            WHEN replicas.control IS NOT NULL THEN replicas.producer_epoch * {EPOCH} END
FROM replicas JOIN partitions ON replicas.topic_id = partitions.topic_id
  AND replicas.partition = partitions.partition
"""
"""Acknowledgements (kind 0), reads (1) and records on disks (2), as narrow as possible.

`flags` has 1 for a wrong checksum, 2 for what the final leader has, and from 4 on acks=all of an
acknowledgement, or the kind of a record on a disk: 4 in a transaction, 8 a commit's marker, 16 an
abort's. Columns with two meanings hold

- of a read: the groups of its client, its final pass, and its time;
- of a record on a disk: its leader epoch and its batch's CRC with REST, the base offset of its
  batch, and its producer id. `pseq` is its producer's epoch and sequence (a marker has none).

The final leader's copy determines the kind of a record and its producer, where it exists.
"""

_GROUPED = """
SELECT bucket, slot, value_id, MIN(key_hash) AS key_low, MAX(key_hash) AS key_high,
  SUM(CASE WHEN kind = 0 THEN 1 ELSE 0 END) AS acked,
  SUM(CASE WHEN kind = 0 AND flags >= 4 THEN 1 ELSE 0 END) AS acked_all,
  SUM(CASE WHEN kind = 1 THEN 1 ELSE 0 END) AS n_reads,
  SUM(CASE WHEN kind = 1 AND pass_or_base <> 0 THEN 1 ELSE 0 END) AS n_final,
  BIT_OR(CASE WHEN kind = 1 THEN groups_or_ident ELSE 0 END) AS grps,
  BIT_OR(CASE WHEN kind = 1 THEN pass_or_base ELSE 0 END) AS seen,
  MIN(CASE WHEN kind = 1 THEN read_ns_or_pid END) AS read_ns,
  SUM(CASE WHEN kind = 2 THEN 1 ELSE 0 END) AS copies,
  MAX((flags DIV 2) % 2) AS on_leader,
  SUM(CASE WHEN kind = 1 THEN flags % 2 ELSE 0 END) AS broken_read,
  SUM(CASE WHEN kind = 2 THEN flags % 2 ELSE 0 END) AS broken_disk,
  MAX(CASE WHEN kind = 2 THEN flags DIV 4 + flags DIV 2 % 2 * 8 ELSE 0 END) % 8 AS marks,
  MIN(CASE WHEN kind = 2 THEN groups_or_ident END) AS ident_low,
  MAX(CASE WHEN kind = 2 THEN groups_or_ident END) AS ident_high,
  MIN(CASE WHEN kind = 2 THEN pass_or_base END) AS base_low,
  MAX(CASE WHEN kind = 2 THEN pass_or_base END) AS base_high,
  MAX(CASE WHEN kind = 2 AND flags DIV 2 % 2 = 1 THEN read_ns_or_pid END) AS pid,
  MAX(CASE WHEN flags DIV 2 % 2 = 1 THEN pseq END) AS pseq
FROM scattered GROUP BY slot, bucket, value_id
"""
"""The observations of one value at one offset, counted by kind."""

SLOTS = f"""
WITH observations AS ({OBSERVATIONS}),
scattered AS (SELECT *, slot DIV {BUCKET} AS bucket FROM observations {{scatter}}),
grouped AS ({_GROUPED}),
framed AS (
  SELECT *, slot DIV {SHIFT} AS p, slot % {SHIFT} AS off FROM grouped)
SELECT framed.bucket, framed.slot, framed.p, framed.off, framed.value_id, framed.key_low,
  framed.key_high, framed.acked, framed.acked_all, framed.n_reads, framed.n_final, framed.grps,
  framed.seen, framed.read_ns, framed.copies, framed.on_leader, framed.broken_read,
  framed.broken_disk, framed.marks, framed.ident_low, framed.ident_high, framed.base_low,
  framed.base_high, framed.pid, framed.pseq,
  CASE WHEN framed.on_leader = 1 AND framed.marks = 0 AND framed.value_id IS NOT NULL THEN 1
       ELSE 0 END AS visible,
  COALESCE(cover.copies, 0) AS expected,
  COALESCE(CASE WHEN framed.marks = 0 AND (cover.copies > 0 OR cover.mask_ru = 0) THEN cover.mask_ru
                + cover.mask_rc
    ELSE cover.mask_ru END, 0) AS mask,
  COALESCE(cover.mask_rc, 0) AS mask_rc
FROM framed LEFT JOIN cover ON cover.p = framed.p AND framed.off >= cover.lo
  AND framed.off < cover.hi
"""

_PLACED = f"""
SELECT value_id, COUNT(*) AS n_slots, SUM(on_leader) AS log_slots,
  MIN(CASE WHEN on_leader = 1 THEN slot END) AS first_slot,
  MAX(CASE WHEN on_leader = 1 THEN slot END) AS last_slot,
  SUM(CASE WHEN seen <> 0 THEN 1 ELSE 0 END) AS seen_slots,
  MIN(CASE WHEN seen <> 0 THEN slot END) AS first_seen,
  MAX(CASE WHEN seen <> 0 THEN slot END) AS last_seen,
  MIN(CASE WHEN n_reads > 0 OR copies > 0 THEN slot END) AS shown_slot,
  MAX(CASE WHEN n_reads > 0 OR copies > 0 THEN slot END) AS shown_last,
  MIN(CASE WHEN n_reads > 0 THEN slot END) AS read_slot,
  SUM(n_reads) AS n_reads, MIN(read_ns) AS read_ns, SUM(copies) AS copies,
  MAX(CASE WHEN on_leader = 1 AND acked > 0 THEN 1 ELSE 0 END) AS at_ack,
  MAX(CASE WHEN on_leader = 1 AND (seen & mask) <> mask THEN 1 ELSE 0 END) AS unserved,
  MAX(CASE WHEN mask <> 0 THEN 1 ELSE 0 END) AS asked,
  MAX(CASE WHEN n_reads > 0 AND mask <> 0 THEN 1 ELSE 0 END) AS read_asked,
  MAX(CASE WHEN mask_rc <> 0 THEN 1 ELSE 0 END) AS rc_asked,
  MAX(CASE WHEN (seen & mask_rc) <> 0 THEN 1 ELSE 0 END) AS rc_shown,
  MAX(CASE WHEN mask_rc <> 0 AND (seen & mask_rc) = mask_rc THEN 1 ELSE 0 END) AS rc_whole,
  BIT_OR(seen) AS given,
  BIT_OR(CASE WHEN n_reads > 0 OR copies > 0 THEN mask_rc - (seen & mask_rc) ELSE 0 END)
    AS rc_lacks,
  BIT_OR(mask_rc) AS rc_over, SUM(n_reads) + SUM(copies) AS met,
  MAX(CASE WHEN on_leader = 1 THEN pid END) AS pid,
  MAX(CASE WHEN on_leader = 1 THEN pseq END) AS pseq,
  MAX(CASE WHEN on_leader = 1 AND {epoch_of("ident_low")} = {epoch_of("ident_high")}
    THEN ident_high END) AS ident,
  MIN(key_low) AS key_low, MAX(key_high) AS key_high,
  MAX(broken_read + broken_disk) AS broken
FROM (SELECT * FROM slots WHERE value_id IS NOT NULL {{gather}}) value_slots GROUP BY value_id
"""
"""The slots of one value: where it is, who read it, and in which passes it is missing."""

VALS = f"""
WITH placed AS ({_PLACED})
SELECT /*+ SHUFFLE_HASH(placed) */ COALESCE(sends.value_id, placed.value_id) AS value_id,
  CASE WHEN sends.value_id IS NOT NULL THEN 1 ELSE 0 END AS sent,
  COALESCE(partitions.p, placed.shown_slot DIV {SHIFT}) AS p, partitions.p AS sent_p,
  sends.client, sends.session, sends.op, sends.invoke_ns, sends.complete_ns, sends.outcome,
  sends.error, sends.attempts,
  CASE WHEN sends.ambiguous THEN 1 ELSE 0 END AS ambiguous, sends.node, sends.key AS sent_key,
  sends.acks, CASE WHEN sends.idempotent THEN 1 ELSE 0 END AS idempotent,
  CASE WHEN sends.tombstone THEN 1 ELSE 0 END AS tombstone, sends.timestamp_ms, sends.txn,
    sends.source, intended_partitions.p AS intended_p,
  CASE WHEN sends.outcome = 'ok' AND sends.offset >= 0 THEN sends.offset END AS ack_off,
  COALESCE(placed.n_slots, 0) AS n_slots, COALESCE(placed.log_slots, 0) AS log_slots,
  placed.first_slot, placed.last_slot, COALESCE(placed.seen_slots, 0) AS seen_slots,
  placed.first_seen, placed.last_seen, placed.shown_slot, placed.shown_last, placed.read_slot,
  COALESCE(placed.n_reads, 0) AS n_reads, placed.read_ns, COALESCE(placed.copies, 0) AS copies,
  COALESCE(placed.at_ack, 0) AS at_ack, COALESCE(placed.unserved, 0) AS unserved,
  COALESCE(placed.asked, 0) AS asked, COALESCE(placed.read_asked, 0) AS read_asked, placed.pid,
  placed.pseq, placed.ident,
  CASE WHEN sends.value_id IS NOT NULL AND (placed.key_low <> {_mark_sql("sends")}
    OR placed.key_high <> {_mark_sql("sends")}) THEN 1 ELSE 0 END AS rekeyed,
  COALESCE(placed.broken, 0) AS broken, COALESCE(placed.rc_asked, 0) AS rc_asked,
  COALESCE(placed.rc_shown, 0) AS rc_shown, COALESCE(placed.rc_whole, 0) AS rc_whole,
  COALESCE(placed.given, 0) AS given,
  CASE WHEN placed.rc_whole = 0 AND placed.met = 0 THEN placed.rc_over
    WHEN placed.rc_whole = 0 THEN placed.rc_lacks - (placed.rc_lacks & placed.given)
    ELSE 0 END AS rc_lacks
FROM sends
LEFT JOIN partitions ON sends.topic_id = partitions.topic_id
     AND COALESCE(sends.partition, sends.partition_intended) = partitions.partition
LEFT JOIN partitions intended_partitions ON sends.topic_id = intended_partitions.topic_id
  AND sends.partition_intended = intended_partitions.partition
FULL OUTER JOIN placed ON sends.value_id = placed.value_id
"""

_WELL = f"""records.outcome = 'ok' AND records.n_slots = 1 AND records.log_slots = 1
  AND records.unserved = 0 AND records.at_ack = 1 AND records.rekeyed = 0
  AND records.shown_slot = records.p * {SHIFT} + records.ack_off
  AND COALESCE(records.intended_p, records.p) = records.p
  AND COALESCE(records.read_ns, records.invoke_ns) >= records.invoke_ns
  AND (records.seen_slots > 0 OR partitions.seen_end IS NULL
       OR records.ack_off < partitions.seen_end)
  AND (partitions.late_pass_begin IS NULL OR records.ack_off >= partitions.late_pass_begin)"""
"""Acknowledged and at exactly that place; each finding from `irregular_values` breaks one of
these."""

IRREGULAR_VALUES = f"""
SELECT records.* FROM records LEFT JOIN partitions ON partitions.p = records.sent_p
  WHERE NOT COALESCE({_WELL}, FALSE)
"""

KINDS = f"""
SELECT *, COUNT(*) AS n
FROM (SELECT records.sent_p, records.sent, records.outcome, records.ambiguous, records.acks,
        records.idempotent, records.node, records.at_ack,
        records.asked, {epoch_of("records.ident")} AS epoch,
        CASE WHEN records.attempts = 1 THEN 1 END AS attempts, LEAST(records.n_reads, 1) AS n_reads,
          LEAST(records.log_slots, 1) AS log_slots, LEAST(records.seen_slots, 1) AS seen_slots,
          records.ack_off * 0 AS ack_off,
        records.shown_slot * 0 AS shown_slot, records.complete_ns * 0 AS complete_ns
        FROM records) reduced_records
GROUP BY sent_p, sent, outcome, ambiguous, acks, idempotent, node, at_ack, asked,
  epoch, attempts, n_reads, log_slots, seen_slots, ack_off, shown_slot, complete_ns
"""

WRITE_ATTEMPTS = f"""
SELECT records.sent_p AS p, MIN(records.invoke_ns) AS first_ns, MAX({WAITS}) AS last_ns
FROM records WHERE records.sent_p IN (SELECT p FROM progress_in_faults) AND NOT ({REFUSED})
GROUP BY records.sent_p, records.invoke_ns DIV {TICK_NS}
"""

SHARED = f"""
SELECT slots.slot, SUM(slots.copies) AS copies, SUM(CASE WHEN slots.value_id IS NOT NULL
    AND (slots.n_reads > 0 OR slots.on_leader = 1 OR slots.acked_all > 0) THEN 1
    ELSE 0 END) AS rivals
FROM slots JOIN (
  SELECT bucket FROM slots GROUP BY bucket
  HAVING COUNT(*)
    > bit_count(BIT_OR(CAST(1 AS BIGINT) << CAST(slot % {BUCKET} AS INT)))) crowded_buckets
  ON crowded_buckets.bucket = slots.bucket
GROUP BY slots.slot HAVING COUNT(*) > 1
"""

KEYED = f"""
SELECT keyed_records.*,
  MAX(CASE WHEN keyed_records.outcome = 'ok'
           THEN keyed_records.off END) OVER (PARTITION BY keyed_records.p,
               keyed_records.key) AS last_off,
  MAX(CASE WHEN keyed_records.sure = 1
           THEN keyed_records.off END) OVER (PARTITION BY keyed_records.p,
               keyed_records.key) AS sure_off,
  MAX(CASE WHEN keyed_records.log_slots > 0
           THEN keyed_records.off END) OVER (PARTITION BY keyed_records.p,
               keyed_records.key) AS shown_off,
  SUM(keyed_records.unresolved) OVER (PARTITION BY keyed_records.p, keyed_records.key) AS open_n,
  SUM(keyed_records.unresolved * keyed_records.tombstone) OVER (PARTITION BY keyed_records.p,
      keyed_records.key) AS open_tombstones
FROM (SELECT records.sent_p AS p, records.sent_key AS key, records.value_id, records.client,
        records.acks, records.outcome,
        records.tombstone, records.invoke_ns, records.complete_ns, records.n_reads,
        records.log_slots, records.copies, records.unserved, records.rc_asked, records.rc_whole,
        COALESCE(CASE WHEN records.idempotent = 0
                      AND records.last_slot % {SHIFT} >= COALESCE(records.ack_off, 0)
            THEN records.last_slot % {SHIFT} END,
          records.ack_off, records.first_slot % {SHIFT}, records.read_slot % {SHIFT}) AS off,
        CASE WHEN records.txn IS NOT NULL AND COALESCE(transactions.fate, '') <> 'committed' THEN 1
          WHEN records.outcome = 'fail' AND records.ambiguous = 0 THEN 0
          WHEN records.tombstone = 1 AND records.idempotent = 0
          AND COALESCE(records.attempts, 2) > 1 THEN 1
          WHEN records.outcome = 'ok' AND COALESCE(records.ack_off, records.first_slot) IS NOT NULL
          THEN 0
          ELSE 1 END AS unresolved,
        CASE WHEN records.outcome = 'fail' THEN 0
          WHEN records.txn IS NOT NULL
            THEN CASE WHEN records.outcome = 'ok' AND transactions.fate = 'committed'
              AND COALESCE(records.ack_off, records.first_slot) IS NOT NULL THEN 1 ELSE 0 END
          WHEN records.n_reads > 0 OR (records.outcome = 'ok'
            AND COALESCE(records.ack_off, records.first_slot) IS NOT NULL) THEN 1
          ELSE 0 END AS sure
      FROM records JOIN partitions ON partitions.p = records.sent_p
      LEFT JOIN txn_p transactions ON transactions.client = records.client
        AND transactions.session = records.session AND transactions.txn = records.txn
      WHERE records.sent = 1 AND partitions.compacted = 1 AND partitions.in_run = 1
        AND records.sent_key IS NOT NULL
        AND NOT (COALESCE(transactions.fate, '') = 'aborted'
                 AND transactions.late = 0) {{only}}) keyed_records
"""

GAPS = f"""
SELECT * FROM (
  SELECT reads.client, reads.session, reads.pass, reads.poll, partitions.p, reads.offset AS off,
    reads.value_id, reads.read_ns, reads.generation, partitions.p * {SHIFT}
    + GREATEST(0, LEAST(reads.offset, {SHIFT} - 1)) AS slot,
    COALESCE(LAG(reads.offset) OVER w, pass_begins.from_offset - 1) AS prev_off,
    COALESCE(LAG(reads.poll) OVER w, reads.poll) AS prev_poll,
    CASE WHEN LAG(reads.poll) OVER w = reads.poll AND LAG(reads.offset) OVER w = reads.offset
      AND LAG(reads.position_in_poll) OVER w = reads.position_in_poll THEN 1 ELSE 0 END AS again,
    COALESCE(LAG(reads.generation) OVER w, reads.generation) AS prev_generation,
    CASE WHEN LAG(reads.poll) OVER w IS NULL THEN pass_begins.begin_ns END AS begin_ns,
    LAG(reads.value_id) OVER w AS prev_value_id, LAG(reads.read_ns) OVER w AS prev_read_ns
  FROM reads JOIN partitions ON reads.topic_id = partitions.topic_id
    AND reads.partition = partitions.partition
  LEFT JOIN (SELECT passes.client, passes.session, passes.pass, passes.topic_id, passes.partition,
               MIN(passes.from_offset) AS from_offset, MIN(passes.begin_ns) AS begin_ns FROM passes
             GROUP BY passes.client, passes.session, passes.pass, passes.topic_id,
               passes.partition) pass_begins
    ON pass_begins.client = reads.client AND pass_begins.session = reads.session
      AND pass_begins.pass = reads.pass AND pass_begins.topic_id = reads.topic_id
      AND pass_begins.partition = reads.partition
  WINDOW w AS (PARTITION BY reads.client, reads.session, reads.pass, partitions.p
               ORDER BY reads.poll, reads.position_in_poll)
) steps WHERE prev_off IS NOT NULL AND off <> prev_off + 1
  AND client NOT IN (SELECT client FROM damaged)
"""

TICKS = f"""
SELECT partitions.p, sends.complete_ns DIV {TICK_NS} AS tick, COUNT(*) AS acks,
  MIN(sends.complete_ns) AS first_ns, MAX(sends.complete_ns) AS last_ns,
  MAX(CASE WHEN sends.acks = -1 THEN sends.offset END) AS last_off
FROM sends LEFT JOIN partitions ON sends.topic_id = partitions.topic_id
  AND sends.partition = partitions.partition
WHERE sends.outcome = 'ok' AND sends.complete_ns IS NOT NULL
GROUP BY partitions.p, sends.complete_ns DIV {TICK_NS}
"""

EPOCH_EXTENTS = f"""
SELECT logs_p.p, logs_p.broker, replicas.leader_epoch,
  SUM(CASE WHEN replicas.offset >= logs_p.log_start AND replicas.offset < logs_p.log_end THEN 1
           ELSE 0 END) AS n,
  MIN(CASE WHEN replicas.offset >= logs_p.log_start THEN replicas.offset END) AS low,
  MAX(CASE WHEN replicas.offset < logs_p.log_end THEN replicas.offset END) AS high,
  SUM(CASE WHEN replicas.offset >= logs_p.log_end THEN 1 ELSE 0 END) AS beyond,
  SUM(CASE WHEN {TABLES["replicas"].lacks_required("replicas")} THEN 1 ELSE 0 END) AS blank
FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
  AND partitions.partition = replicas.partition
JOIN logs_p ON logs_p.p = partitions.p AND logs_p.broker = replicas.broker
GROUP BY logs_p.p, logs_p.broker, replicas.leader_epoch
"""

_SPOILT = ENDED.replace(
    "FROM slots WHERE",
    "FROM slots JOIN partitions ON partitions.p = slots.p AND partitions.losses_ns IS NOT NULL "
    "WHERE",
)
COMMITTED = f"""
SELECT slots.p, slots.off, slots.slot, slots.bucket, slots.value_id, slots.grps
FROM slots JOIN records ON records.value_id = slots.value_id AND records.first_slot = slots.slot
JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
JOIN partitions ON partitions.p = slots.p LEFT JOIN ({_SPOILT}) markers ON markers.slot = slots.slot
WHERE slots.on_leader = 1 AND slots.marks = 1 AND records.outcome = 'ok' AND records.log_slots = 1
  AND transactions.fate = 'committed' AND transactions.late = 0 {{in_transactions}}
  AND (partitions.losses_ns IS NULL OR markers.ended < 4)
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """A shared table: its query, the evidence tables behind it beside those of records, and how it
    may be computed in parts."""

    query: str
    made_of: tuple[str, ...] = ()
    cut: Cut | None = None


STAGES = {
    "slots": Stage(SLOTS, cut=Cut(("sends", "reads", "replicas"), "offset", ranges=True)),
    "records": Stage(VALS, cut=Cut(("slots", "sends"), "value_id")),
    "committed": Stage(COMMITTED, made_of=("txns",)),
    "irregular_values": Stage(IRREGULAR_VALUES),
    "known_commits": Stage(KNOWN_COMMITS),
    "unplaced": Stage(UNPLACED),
    "record_counts": Stage(KINDS),
    "write_attempts": Stage(WRITE_ATTEMPTS),
    "shared": Stage(SHARED),
    "keyed": Stage(KEYED),
    "gaps": Stage(GAPS, made_of=("reads", "passes")),
    "ticks": Stage(TICKS),
    "epoch_extents": Stage(EPOCH_EXTENTS, made_of=("replicas", "logs")),
    "expected_outputs": Stage(EXPECTED_OUTPUTS),
}
"""Shared table to its declaration, in the order of their making."""


def build(
    engine: Engine,
    *,
    compacted: bool = True,
    transactions: bool = True,
    logless: bool = True,
    expected: str = "",
    enough: Callable[[], bool] = lambda: False,
) -> None:
    """Build the shared tables on `engine`, until `enough` is true.

    Without a `compacted` topic `keyed` is empty and costs nothing, as is `committed` without
    `transactions`, and what partitions without logs need where there are none (`logless`).
    `expected` is the query of an application's results (`Derived.expected`).
    """
    for name, shared in STAGES.items():
        if enough():
            return
        if name in EMPTY and not logless:
            engine.table(name, EMPTY[name].empty_table())
            continue
        if name == "expected_outputs":
            if expected:
                engine.keep(name, shared.query.replace("{expected}", expected), None)
            else:
                engine.table(name, NO_EXPECTED_OUTPUTS.empty_table())
            continue
        query = stage(name, engine, compacted=compacted, transactions=transactions)
        engine.keep(name, query, shared.cut)


def stage(name: str, engine: Engine, *, compacted: bool = True, transactions: bool = True) -> str:
    """The query of one stage as `engine` runs it."""
    query = (
        STAGES[name].query.replace("{scatter}", engine.scatter).replace("{gather}", engine.gather)
    )
    query = query.replace("{in_transactions}", "" if transactions else "AND 1 = 0")
    return query.replace("{only}", "" if compacted else "AND 1 = 0")
