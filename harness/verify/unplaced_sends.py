"""Shared tables for partitions without logs: known commits, and sends of unknown offset.

An acknowledged record has an offset, also where its acknowledgement does not carry one. Its place
is bounded by the records whose places are known: a record that was in the log before the send was
invoked lies below it, a record that was sent after the acknowledgement lies above it. A reader that
passed over every offset between the two bounds passed over the record. If no reader received it, it
is lost. Without an upper bound, or where no reader passed, the record may lie beyond the readers:
then it is unread, and the verdict is UNKNOWN (validation/unread_records.py).

A transaction of unknown end was committed if a reader of committed records received a record of
it. All its records were in the log by then.

Bounds in the wrong order contradict each other: they prove no place, and so no loss.
"""

from __future__ import annotations

import pyarrow as pa

from urteil.harness.verify.limits import OF_COMMIT, OWED

SHIFT = 1 << 48

KNOWN_COMMITS = """
SELECT client, session, txn, tid, end_ns AS since_ns
FROM txn_p WHERE fate = 'committed' {in_transactions}
UNION ALL
SELECT records.client, records.session, records.txn, MIN(transactions.tid), MIN(reads.read_ns)
FROM records JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
JOIN reads ON reads.value_id = records.value_id
JOIN clients ON clients.client = reads.client AND clients.session = reads.session
WHERE transactions.fate = 'unknown' AND records.n_reads > 0 AND clients.isolation = 'read_committed'
  {in_transactions}
GROUP BY records.client, records.session, records.txn
"""
"""Transactions that were committed for certain: by their client, or by what a reader of committed
records received."""

DUE = f"""(records.outcome = 'ok' AND {OWED}
  OR records.outcome = 'info' AND known_commits.txn IS NOT NULL
    AND known_commits.since_ns IS NOT NULL)"""
"""Records that are in the log for certain: acknowledged, or of unknown end in a committed
transaction."""

_SENT = f"""
SELECT records.value_id, records.sent_p AS p, records.invoke_ns,
  CASE WHEN records.outcome = 'ok' THEN records.complete_ns
       ELSE known_commits.since_ns END AS done_ns
FROM irregular_values records JOIN partitions ON partitions.p = records.sent_p {OF_COMMIT}
WHERE records.sent = 1 AND partitions.has_log = 0 AND partitions.compacted = 0
  AND records.ack_off IS NULL AND records.n_reads = 0 AND {DUE} 
"""

_PLACED = f"""
SELECT sent_p AS p, invoke_ns,
  CASE WHEN outcome <> 'ok' THEN read_ns WHEN n_reads > 0
    THEN LEAST(complete_ns, read_ns) ELSE complete_ns END AS known_ns,
  COALESCE(ack_off, read_slot % {SHIFT}) AS off
FROM records
WHERE sent = 1 AND sent_p IN (SELECT p FROM unplaced_sends)
  AND (ack_off IS NOT NULL AND acks = -1
       OR ack_off IS NULL AND n_reads > 0 AND read_slot DIV {SHIFT} = sent_p)
"""

UNPLACED = f"""
WITH unplaced_sends AS ({_SENT}),
placed AS ({_PLACED}),
below AS (
  SELECT value_id, bound FROM (
    SELECT value_id, MAX(off) OVER (PARTITION BY p ORDER BY t, kind
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bound
    FROM (SELECT p, invoke_ns AS t, 0 AS kind, value_id, CAST(NULL AS BIGINT) AS off
          FROM unplaced_sends
          UNION ALL SELECT p, known_ns, 1, NULL, off FROM placed) events) neighbours
  WHERE value_id IS NOT NULL),
above AS (
  SELECT value_id, bound FROM (
    SELECT value_id, MIN(off) OVER (PARTITION BY p ORDER BY t DESC, kind
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bound
    FROM (SELECT p, done_ns AS t, 0 AS kind, value_id, CAST(NULL AS BIGINT) AS off
          FROM unplaced_sends
          UNION ALL SELECT p, invoke_ns, 1, NULL, off FROM placed) events) neighbours
  WHERE value_id IS NOT NULL),
bounded AS (
  SELECT unplaced.value_id, unplaced.p, below.bound AS low_off,
    CASE WHEN partitions.ends_known = 1 AND unplaced.done_ns < partitions.ends_known_ns
      THEN LEAST(COALESCE(above.bound, partitions.seen_end), partitions.seen_end)
      ELSE above.bound END AS high_off
  FROM unplaced_sends unplaced JOIN partitions ON partitions.p = unplaced.p
  LEFT JOIN below ON below.value_id = unplaced.value_id
  LEFT JOIN above ON above.value_id = unplaced.value_id)
SELECT bounded.value_id, bounded.p, bounded.low_off, bounded.high_off,
  MAX(CASE WHEN read_ranges.p IS NOT NULL THEN 1 ELSE 0 END) AS passed
FROM bounded LEFT JOIN read_ranges
  ON read_ranges.p = bounded.p AND read_ranges.lo <= COALESCE(bounded.low_off + 1, 0)
    AND read_ranges.hi >= bounded.high_off AND bounded.high_off > COALESCE(bounded.low_off, -1)
GROUP BY bounded.value_id, bounded.p, bounded.low_off, bounded.high_off
"""
"""Unread sends of unknown offset, with the offsets between which they lie; `passed` says that
readers passed over all of these."""

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
