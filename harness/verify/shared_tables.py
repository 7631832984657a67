"""The shared tables: the large evidence is shuffled once, and every check filters the results.

- `slots`: a row for each (partition, offset, value) that was acknowledged, read or is on a disk.
  `on_leader`: the final leader has it; without any logs, a reader received it.
- `vals`: a row for each value: its send, if there is one, joined with the places where it is.
- `committed`: slots of the final leader's records in transactions whose commit was acknowledged,
  except where an unclean election or a disk took their marker.
- `irregular_values`: values that are not acknowledged, at another place, missing or not shown.
- `known_commits`, `unplaced`: what partitions without logs need (unplaced_sends.py).
- `kinds`: counts of values that are alike in the columns of most checks; counts and measures are
  reduced to 0, 1 or NULL there.
- `write_attempts`: first and last time of the attempts to write, by partition and 100 ms.
- `shared`: slots with more than one row: the number of values seen there, and all their copies.
- `keyed`: sends to compacted topics, with the last of their key. Sends of aborted transactions are
  left out; of a record that was sent several times without idempotence, the last copy counts.
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

from dataclasses import dataclass

from urteil.harness.evidence.schema import TABLES
from urteil.harness.verify.engines.cuts import Cut
from urteil.harness.verify.engines.engine import Engine
from urteil.harness.verify.expected_outputs import EXPECTED_OUTPUTS, NO_EXPECTED_OUTPUTS
from urteil.harness.verify.limits import BUCKET, ENDED, REFUSED, TICK_NS, WAITS
from urteil.harness.verify.unplaced_sends import EMPTY, KNOWN_COMMITS, UNPLACED

SHIFT = 1 << 48
EPOCH = 1 << 32

REST = f"""
3 * CAST(COALESCE(l.batch_bytes, 0) AS BIGINT) + 5 * CAST(COALESCE(l.sequence, -1) AS BIGINT)
+ 7 * CAST(COALESCE(l.producer_epoch, -1) AS BIGINT) + 11 * (COALESCE(l.producer_id, -1) % {EPOCH})
+ 13 * (COALESCE(l.timestamp_ms, 0) % {EPOCH}) + CASE WHEN l.transactional THEN 17 ELSE 0 END
+ CASE WHEN l.control = 'abort' THEN 19 WHEN l.control IS NOT NULL THEN 23 ELSE 0 END"""
"""One number of what else a batch says, so that replicas which differ in any of it differ in it.
No producer is written as -1, as Kafka does, or as null."""

TIMES = 1 << 61


def _mark_sql(row: str) -> str:
    """One number of a record's key, and of its time where that is its client's."""
    return (
        f"CASE WHEN {row}.key IS NULL THEN 1 ELSE xxhash64({row}.key) DIV 2 END"
        f" + CASE WHEN p.sent_times = 1 THEN COALESCE({row}.timestamp_ms, 0) % {TIMES} ELSE 0 END"
    )


OBSERVATIONS = f"""
SELECT p.p * {SHIFT} + LEAST(s.offset, {SHIFT} - 1) AS slot, s.value_id AS value_id, 0 AS kind,
       CAST(NULL AS BIGINT) AS key_hash, CASE WHEN s.acks = -1 THEN 4 ELSE 0 END AS flags,
       CAST(0 AS BIGINT) AS groups_or_ident, CAST(0 AS BIGINT) AS pass_or_base,
       CAST(0 AS BIGINT) AS read_ns_or_pid, CAST(NULL AS BIGINT) AS pseq
FROM sends s JOIN parts p ON s.topic_id = p.topic_id AND s.partition = p.partition
WHERE s.outcome = 'ok' AND s.offset >= 0
UNION ALL
SELECT p.p * {SHIFT} + GREATEST(0, LEAST(r.offset, {SHIFT} - 1)), r.value_id, 1,
       {_mark_sql("r")}, CASE WHEN r.intact = FALSE THEN 1 ELSE 0 END + 2 * p.read_log,
       COALESCE(g.bits, 0), COALESCE(b.bit, 0), r.read_ns, NULL
FROM reads r JOIN parts p ON r.topic_id = p.topic_id AND r.partition = p.partition
LEFT JOIN pass_bits b ON b.client = r.client AND b.session = r.session AND b.pass = r.pass
     AND b.p = p.p
LEFT JOIN members g ON g.client = r.client AND g.session = r.session
UNION ALL
SELECT p.p * {SHIFT} + GREATEST(0, LEAST(l.offset, {SHIFT} - 1)), l.value_id, 2,
       CASE WHEN l.value_id IS NOT NULL THEN {_mark_sql("l")} END,
       CASE WHEN l.intact = FALSE THEN 1 ELSE 0 END
       + CASE WHEN l.broker = p.final_leader THEN 2 ELSE 0 END
       + CASE WHEN l.transactional THEN 4 ELSE 0 END
       + CASE WHEN l.control = 'abort' THEN 16 WHEN l.control IS NOT NULL THEN 8 ELSE 0 END,
       l.leader_epoch * {EPOCH} + ABS(l.batch_crc + {REST}) % {EPOCH}, l.batch_base, l.producer_id,
       CASE WHEN l.sequence >= 0 THEN l.producer_epoch * {EPOCH} + l.sequence
            WHEN l.control IS NOT NULL THEN l.producer_epoch * {EPOCH} END
FROM replicas l JOIN parts p ON l.topic_id = p.topic_id AND l.partition = p.partition
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
scattered AS (SELECT o.*, o.slot DIV {BUCKET} AS bucket FROM observations o {{scatter}}),
grouped AS ({_GROUPED}),
framed AS (
  SELECT g.*, g.slot DIV {SHIFT} AS p, g.slot % {SHIFT} AS off FROM grouped g)
SELECT f.bucket, f.slot, f.p, f.off, f.value_id, f.key_low, f.key_high,
  f.acked, f.acked_all, f.n_reads, f.n_final, f.grps, f.seen, f.read_ns, f.copies, f.on_leader,
  f.broken_read, f.broken_disk, f.marks, f.ident_low, f.ident_high, f.base_low, f.base_high, f.pid,
  f.pseq,
  CASE WHEN f.on_leader = 1 AND f.marks = 0 AND f.value_id IS NOT NULL THEN 1 ELSE 0 END AS visible,
  COALESCE(c.copies, 0) AS expected,
  COALESCE(CASE WHEN f.marks = 0 AND (c.copies > 0 OR c.mask_ru = 0) THEN c.mask_ru + c.mask_rc
    ELSE c.mask_ru END, 0) AS mask,
  COALESCE(c.mask_rc, 0) AS mask_rc
FROM framed f LEFT JOIN cover c ON c.p = f.p AND f.off >= c.lo AND f.off < c.hi
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
  MAX(CASE WHEN on_leader = 1 AND ident_low DIV {EPOCH} = ident_high DIV {EPOCH}
    THEN ident_high END) AS ident,
  MIN(key_low) AS key_low, MAX(key_high) AS key_high,
  MAX(broken_read + broken_disk) AS broken
FROM (SELECT s.* FROM slots s WHERE s.value_id IS NOT NULL {{gather}}) s GROUP BY value_id
"""
"""The slots of one value: where it is, who read it, and in which passes it is missing."""

VALS = f"""
WITH placed AS ({_PLACED})
SELECT /*+ SHUFFLE_HASH(v) */ COALESCE(s.value_id, v.value_id) AS value_id,
  CASE WHEN s.value_id IS NOT NULL THEN 1 ELSE 0 END AS sent,
  COALESCE(p.p, v.shown_slot DIV {SHIFT}) AS p, p.p AS sent_p,
  s.client, s.session, s.op, s.invoke_ns, s.complete_ns, s.outcome, s.error, s.attempts,
  CASE WHEN s.ambiguous THEN 1 ELSE 0 END AS ambiguous, s.node, s.key AS sent_key,
  s.acks, CASE WHEN s.idempotent THEN 1 ELSE 0 END AS idempotent,
  CASE WHEN s.tombstone THEN 1 ELSE 0 END AS tombstone, s.timestamp_ms, s.txn, s.source,
  i.p AS intended_p,
  CASE WHEN s.outcome = 'ok' AND s.offset >= 0 THEN s.offset END AS ack_off,
  COALESCE(v.n_slots, 0) AS n_slots, COALESCE(v.log_slots, 0) AS log_slots, v.first_slot,
  v.last_slot, COALESCE(v.seen_slots, 0) AS seen_slots, v.first_seen, v.last_seen, v.shown_slot,
  v.shown_last, v.read_slot, COALESCE(v.n_reads, 0) AS n_reads, v.read_ns,
  COALESCE(v.copies, 0) AS copies, COALESCE(v.at_ack, 0) AS at_ack,
  COALESCE(v.unserved, 0) AS unserved, COALESCE(v.asked, 0) AS asked,
  COALESCE(v.read_asked, 0) AS read_asked, v.pid, v.pseq, v.ident,
  CASE WHEN s.value_id IS NOT NULL AND (v.key_low <> {_mark_sql("s")}
    OR v.key_high <> {_mark_sql("s")}) THEN 1 ELSE 0 END AS rekeyed,
  COALESCE(v.broken, 0) AS broken, COALESCE(v.rc_asked, 0) AS rc_asked,
  COALESCE(v.rc_shown, 0) AS rc_shown, COALESCE(v.rc_whole, 0) AS rc_whole,
  COALESCE(v.given, 0) AS given,
  CASE WHEN v.rc_whole = 0 AND v.met = 0 THEN v.rc_over
    WHEN v.rc_whole = 0 THEN v.rc_lacks - (v.rc_lacks & v.given) ELSE 0 END AS rc_lacks
FROM sends s
LEFT JOIN parts p ON s.topic_id = p.topic_id
     AND COALESCE(s.partition, s.partition_intended) = p.partition
LEFT JOIN parts i ON s.topic_id = i.topic_id AND s.partition_intended = i.partition
FULL OUTER JOIN placed v ON s.value_id = v.value_id
"""

_WELL = f"""v.outcome = 'ok' AND v.n_slots = 1 AND v.log_slots = 1 AND v.unserved = 0
  AND v.at_ack = 1 AND v.rekeyed = 0 AND v.shown_slot = v.p * {SHIFT} + v.ack_off
  AND COALESCE(v.intended_p, v.p) = v.p AND COALESCE(v.read_ns, v.invoke_ns) >= v.invoke_ns
  AND (v.seen_slots > 0 OR q.seen_end IS NULL OR v.ack_off < q.seen_end)
  AND (q.late_begin IS NULL OR v.ack_off >= q.late_begin)"""
"""Acknowledged and at exactly that place; each finding from `irregular_values` breaks one of
these."""

IRREGULAR_VALUES = f"""
SELECT v.* FROM vals v LEFT JOIN parts q ON q.p = v.sent_p WHERE NOT COALESCE({_WELL}, FALSE)
"""

KINDS = f"""
SELECT v.*, COUNT(*) AS n
FROM (SELECT v.sent_p, v.sent, v.outcome, v.ambiguous, v.acks, v.idempotent, v.node, v.at_ack,
        v.asked, v.ident DIV {EPOCH} AS epoch, CASE WHEN v.attempts = 1 THEN 1 END AS attempts,
        LEAST(v.n_reads, 1) AS n_reads, LEAST(v.log_slots, 1) AS log_slots,
        LEAST(v.seen_slots, 1) AS seen_slots, v.ack_off * 0 AS ack_off,
        v.shown_slot * 0 AS shown_slot, v.complete_ns * 0 AS complete_ns FROM vals v) v
GROUP BY v.sent_p, v.sent, v.outcome, v.ambiguous, v.acks, v.idempotent, v.node, v.at_ack, v.asked,
  v.epoch, v.attempts, v.n_reads, v.log_slots, v.seen_slots, v.ack_off, v.shown_slot, v.complete_ns
"""

WRITE_ATTEMPTS = f"""
SELECT v.sent_p AS p, MIN(v.invoke_ns) AS first_ns, MAX({WAITS}) AS last_ns
FROM vals v WHERE v.sent_p IN (SELECT t.p FROM progress_in_faults t) AND NOT ({REFUSED})
GROUP BY v.sent_p, v.invoke_ns DIV {TICK_NS}
"""

SHARED = f"""
SELECT s.slot, SUM(s.copies) AS copies, SUM(CASE WHEN s.value_id IS NOT NULL
    AND (s.n_reads > 0 OR s.on_leader = 1 OR s.acked_all > 0) THEN 1 ELSE 0 END) AS rivals
FROM slots s JOIN (
  SELECT k.bucket FROM slots k GROUP BY k.bucket
  HAVING COUNT(*) > bit_count(BIT_OR(CAST(1 AS BIGINT) << CAST(k.slot % {BUCKET} AS INT)))) b
  ON b.bucket = s.bucket
GROUP BY s.slot HAVING COUNT(*) > 1
"""

KEYED = f"""
SELECT k.*,
  MAX(CASE WHEN k.outcome = 'ok' THEN k.off END) OVER (PARTITION BY k.p, k.key) AS last_off,
  MAX(CASE WHEN k.log_slots > 0 THEN k.off END) OVER (PARTITION BY k.p, k.key) AS shown_off,
  SUM(k.unresolved) OVER (PARTITION BY k.p, k.key) AS open_n
FROM (SELECT v.sent_p AS p, v.sent_key AS key, v.value_id, v.client, v.acks, v.outcome,
        v.tombstone, v.invoke_ns, v.complete_ns, v.n_reads, v.log_slots, v.copies, v.unserved,
        v.rc_asked, v.rc_whole,
        COALESCE(CASE WHEN v.idempotent = 0 AND v.last_slot % {SHIFT} >= COALESCE(v.ack_off, 0)
            THEN v.last_slot % {SHIFT} END,
          v.ack_off, v.first_slot % {SHIFT}, v.read_slot % {SHIFT}) AS off,
        CASE WHEN v.txn IS NOT NULL AND COALESCE(t.fate, '') <> 'committed' THEN 1
          WHEN v.outcome = 'fail' AND v.ambiguous = 0 THEN 0
          WHEN v.tombstone = 1 AND v.idempotent = 0 AND COALESCE(v.attempts, 2) > 1 THEN 1
          WHEN v.outcome = 'ok' AND COALESCE(v.ack_off, v.first_slot) IS NOT NULL THEN 0
          ELSE 1 END AS unresolved
      FROM vals v JOIN parts q ON q.p = v.sent_p
      LEFT JOIN txn_p t ON t.client = v.client AND t.session = v.session AND t.txn = v.txn
      WHERE v.sent = 1 AND q.compacted = 1 AND q.ours = 1 AND v.sent_key IS NOT NULL
        AND NOT (COALESCE(t.fate, '') = 'aborted' AND t.late = 0) {{only}}) k
"""

GAPS = f"""
SELECT g.* FROM (
  SELECT r.client, r.session, r.pass, r.poll, p.p, r.offset AS off, r.value_id, r.read_ns,
    r.generation, p.p * {SHIFT} + GREATEST(0, LEAST(r.offset, {SHIFT} - 1)) AS slot,
    COALESCE(LAG(r.offset) OVER w, b.from_offset - 1) AS prev_off,
    COALESCE(LAG(r.poll) OVER w, r.poll) AS prev_poll,
    CASE WHEN LAG(r.poll) OVER w = r.poll AND LAG(r.offset) OVER w = r.offset
      AND LAG(r.position_in_poll) OVER w = r.position_in_poll THEN 1 ELSE 0 END AS again,
    COALESCE(LAG(r.generation) OVER w, r.generation) AS prev_generation,
    CASE WHEN LAG(r.poll) OVER w IS NULL THEN b.begin_ns END AS begin_ns,
    LAG(r.value_id) OVER w AS prev_value_id, LAG(r.read_ns) OVER w AS prev_read_ns
  FROM reads r JOIN parts p ON r.topic_id = p.topic_id AND r.partition = p.partition
  LEFT JOIN (SELECT s.client, s.session, s.pass, s.topic_id, s.partition,
               MIN(s.from_offset) AS from_offset, MIN(s.begin_ns) AS begin_ns FROM passes s
             GROUP BY s.client, s.session, s.pass, s.topic_id, s.partition) b
    ON b.client = r.client AND b.session = r.session AND b.pass = r.pass
       AND b.topic_id = r.topic_id AND b.partition = r.partition
  WINDOW w AS (PARTITION BY r.client, r.session, r.pass, p.p ORDER BY r.poll, r.position_in_poll)
) g WHERE g.prev_off IS NOT NULL AND g.off <> g.prev_off + 1
  AND g.client NOT IN (SELECT d.client FROM damaged d)
"""

TICKS = f"""
SELECT p.p, s.complete_ns DIV {TICK_NS} AS tick, COUNT(*) AS acks,
  MIN(s.complete_ns) AS first_ns, MAX(s.complete_ns) AS last_ns,
  MAX(CASE WHEN s.acks = -1 THEN s.offset END) AS last_off
FROM sends s LEFT JOIN parts p ON s.topic_id = p.topic_id AND s.partition = p.partition
WHERE s.outcome = 'ok' AND s.complete_ns IS NOT NULL
GROUP BY p.p, s.complete_ns DIV {TICK_NS}
"""

EPOCH_EXTENTS = f"""
SELECT l.p, l.broker, r.leader_epoch,
  SUM(CASE WHEN r.offset >= l.log_start AND r.offset < l.log_end THEN 1 ELSE 0 END) AS n,
  MIN(CASE WHEN r.offset >= l.log_start THEN r.offset END) AS low,
  MAX(CASE WHEN r.offset < l.log_end THEN r.offset END) AS high,
  SUM(CASE WHEN r.offset >= l.log_end THEN 1 ELSE 0 END) AS beyond,
  SUM(CASE WHEN {TABLES["replicas"].lacks_required("r")} THEN 1 ELSE 0 END) AS blank
FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
JOIN logs_p l ON l.p = q.p AND l.broker = r.broker
GROUP BY l.p, l.broker, r.leader_epoch
"""

_SPOILT = ENDED.replace("s WHERE", "s JOIN parts q ON q.p = s.p AND q.spoilt_ns IS NOT NULL WHERE")
COMMITTED = f"""
SELECT s.p, s.off, s.slot, s.bucket, s.value_id, s.grps
FROM slots s JOIN vals v ON v.value_id = s.value_id AND v.first_slot = s.slot
JOIN txn_p t ON t.client = v.client AND t.session = v.session AND t.txn = v.txn
JOIN parts q ON q.p = s.p LEFT JOIN ({_SPOILT}) m ON m.slot = s.slot
WHERE s.on_leader = 1 AND s.marks = 1 AND v.outcome = 'ok' AND v.log_slots = 1
  AND t.fate = 'committed' AND t.late = 0 {{in_transactions}}
  AND (q.spoilt_ns IS NULL OR m.ended < 4)
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
    "vals": Stage(VALS, cut=Cut(("slots", "sends"), "value_id")),
    "committed": Stage(COMMITTED, made_of=("txns",)),
    "irregular_values": Stage(IRREGULAR_VALUES),
    "known_commits": Stage(KNOWN_COMMITS),
    "unplaced": Stage(UNPLACED),
    "kinds": Stage(KINDS),
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
) -> None:
    """Build the shared tables on `engine`.

    Without a `compacted` topic `keyed` is empty and costs nothing, as is `committed` without
    `transactions`, and what partitions without logs need where there are none (`logless`).
    `expected` is the query of an application's results (`Derived.expected`).
    """
    for name, shared in STAGES.items():
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
