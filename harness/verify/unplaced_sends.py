"""Stages of the plan for partitions without logs: known commits, and sends of unknown place.

An acknowledged record has an offset, also where its acknowledgement does not carry one. Its place
is bounded by the records whose places are known: a record that was in the log before the send was
invoked lies below it, a record that was sent after the acknowledgement lies above it. A reader that
passed over every offset between the two bounds passed over the record. If no reader received it, it
is lost. Without an upper bound, or where no reader passed, the record may lie beyond the readers:
then it is unread, and the verdict is UNKNOWN (validation/unread_records.py).

A transaction of unknown end was committed if a reader of committed records received a record of
it. All its records were in the log by then.
"""

from __future__ import annotations

import pyarrow as pa

from urteil.harness.verify.limits import OF_COMMIT, OWED

SHIFT = 1 << 48

KNOWN_COMMITS = """
SELECT w.client, w.session, w.txn, w.tid, w.end_ns AS since_ns
FROM txn_p w WHERE w.fate = 'committed' {in_transactions}
UNION ALL
SELECT v.client, v.session, v.txn, MIN(w.tid), MIN(r.read_ns)
FROM vals v JOIN txn_p w ON w.client = v.client AND w.session = v.session AND w.txn = v.txn
JOIN reads r ON r.value_id = v.value_id
JOIN clients c ON c.client = r.client AND c.session = r.session
WHERE w.fate = 'unknown' AND v.n_reads > 0 AND c.isolation = 'read_committed'
  {in_transactions}
GROUP BY v.client, v.session, v.txn
"""
"""Transactions that were committed for certain: by their client, or by what a reader of committed
records received."""

DUE = f"""(v.outcome = 'ok' AND {OWED}
  OR v.outcome = 'info' AND t.txn IS NOT NULL AND t.since_ns IS NOT NULL)"""
"""What is in the log for certain: acknowledged, or of unknown end in a committed transaction."""

_SENT = f"""
SELECT v.value_id, v.sent_p AS p, v.invoke_ns,
  CASE WHEN v.outcome = 'ok' THEN v.complete_ns ELSE t.since_ns END AS done_ns
FROM irregular_values v JOIN parts q ON q.p = v.sent_p {OF_COMMIT}
WHERE v.sent = 1 AND q.has_log = 0 AND q.compacted = 0 AND v.ack_off IS NULL AND v.n_reads = 0
  AND {DUE} 
"""

_PLACED = f"""
SELECT v.sent_p AS p, v.invoke_ns,
  CASE WHEN v.outcome <> 'ok' THEN v.read_ns WHEN v.n_reads > 0
    THEN LEAST(v.complete_ns, v.read_ns) ELSE v.complete_ns END AS known_ns,
  COALESCE(v.ack_off, v.read_slot % {SHIFT}) AS off
FROM vals v
WHERE v.sent = 1 AND v.sent_p IN (SELECT u.p FROM unplaced_sends u)
  AND (v.ack_off IS NOT NULL AND v.acks = -1
       OR v.ack_off IS NULL AND v.n_reads > 0 AND v.read_slot DIV {SHIFT} = v.sent_p)
"""

UNPLACED = f"""
WITH unplaced_sends AS ({_SENT}),
placed AS ({_PLACED}),
below AS (
  SELECT m.value_id, m.bound FROM (
    SELECT e.value_id, MAX(e.off) OVER (PARTITION BY e.p ORDER BY e.t, e.kind
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bound
    FROM (SELECT u.p, u.invoke_ns AS t, 0 AS kind, u.value_id, CAST(NULL AS BIGINT) AS off
          FROM unplaced_sends u
          UNION ALL SELECT k.p, k.known_ns, 1, NULL, k.off FROM placed k) e) m
  WHERE m.value_id IS NOT NULL),
above AS (
  SELECT m.value_id, m.bound FROM (
    SELECT e.value_id, MIN(e.off) OVER (PARTITION BY e.p ORDER BY e.t DESC, e.kind
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bound
    FROM (SELECT u.p, u.done_ns AS t, 0 AS kind, u.value_id, CAST(NULL AS BIGINT) AS off
          FROM unplaced_sends u
          UNION ALL SELECT k.p, k.invoke_ns, 1, NULL, k.off FROM placed k) e) m
  WHERE m.value_id IS NOT NULL),
bounded AS (
  SELECT u.value_id, u.p, b.bound AS low_off,
    CASE WHEN q.ends_known = 1 AND u.done_ns < q.ends_known_ns
      THEN LEAST(COALESCE(a.bound, q.seen_end), q.seen_end) ELSE a.bound END AS high_off
  FROM unplaced_sends u JOIN parts q ON q.p = u.p
  LEFT JOIN below b ON b.value_id = u.value_id
  LEFT JOIN above a ON a.value_id = u.value_id)
SELECT n.value_id, n.p, n.low_off, n.high_off,
  MAX(CASE WHEN s.p IS NOT NULL THEN 1 ELSE 0 END) AS passed
FROM bounded n LEFT JOIN stretches s
  ON s.p = n.p AND s.lo <= COALESCE(n.low_off + 1, 0) AND s.hi >= n.high_off
GROUP BY n.value_id, n.p, n.low_off, n.high_off
"""
"""Sends of unknown place, unread, with the offsets that they lie between; `passed` says that
readers passed over all of them."""

EMPTY = {
    "known_commits": pa.schema(
        {"client": pa.string(), "session": pa.int32(), "txn": pa.int64(), "tid": pa.string()}
        | {"since_ns": pa.int64()}
    ),
    "unplaced": pa.schema(
        {"value_id": pa.string(), "p": pa.int64(), "low_off": pa.int64(), "high_off": pa.int64()}
        | {"passed": pa.int32()}
    ),
}
"""The stages of a run whose partitions all have logs."""
