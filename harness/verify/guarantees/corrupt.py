"""What comes out carries the checksum that went in, and the time, unless brokers stamp it."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Guarantee, place

_RETIMED = """
(SELECT o.value_id, o.p, o.off, MIN(o.read_ns) AS read_ns, SUM(o.served) AS served,
   SUM(1 - o.served) AS stored, o.foreign_on
 FROM (SELECT v.value_id, q.p, e.off, e.read_ns, e.served, q.foreign_on, e.timestamp_ms, e.intact,
         CASE WHEN v.outcome = 'ok' AND v.attempts > 1
           THEN MAX(CASE WHEN e.served = 0 THEN e.timestamp_ms END) OVER (PARTITION BY v.value_id)
           ELSE v.timestamp_ms END AS sent_ms
       FROM (SELECT r.value_id, r.topic_id, r.partition, r.offset AS off, r.timestamp_ms, r.intact,
               r.read_ns, 1 AS served, CAST(NULL AS INT) AS broker FROM reads r
             UNION ALL
             SELECT l.value_id, l.topic_id, l.partition, l.offset, l.timestamp_ms, l.intact,
               CAST(NULL AS BIGINT), 0, l.broker FROM replicas l) e
       JOIN odd v ON v.value_id = e.value_id AND v.rekeyed = 1
       JOIN parts q ON q.topic_id = e.topic_id AND q.partition = e.partition AND q.sent_times = 1
       WHERE (e.served = 1 OR e.broker = q.final_leader)
         AND v.client NOT IN (SELECT c.client FROM clients c WHERE c.library = 'verifiable')) o
 WHERE o.timestamp_ms <> o.sent_ms AND COALESCE(o.intact, TRUE)
   AND (SELECT COUNT(*) FROM odd w WHERE w.rekeyed = 1) * 2 < (SELECT COUNT(*) FROM sends)
 GROUP BY o.value_id, o.p, o.off, o.foreign_on)
"""
"""Reads and records of the final leader with another time than their send's, of which `intact` says
nothing. A duplicate's acknowledgement tells the time of its batch, which clients take for the
record's: then the log's counts. What Kafka's own tools send has a time that they do not tell; where
most records have another time than their sends, that of a send is of something else."""

GUARANTEE = Guarantee(
    name="corrupt",
    about="a record is not what was sent, by its checksum or its time",
    promise="Record batches carry a CRC-32C over their content, which the broker checks before it "
    "appends and the consumer when it reads.",
    source="Kafka documentation, 5.3 Message Format: Record Batch; KIP-98",
    opportunities="SELECT COALESCE(SUM(s.n_reads + s.copies), 0) AS n FROM slots s "
    "JOIN parts q ON q.p = s.p WHERE q.read_log = 0",
    violations=f"""
SELECT CASE WHEN s.broken_read > 0 THEN 'served' ELSE 'on disk' END AS sub_kind, s.p, s.off,
  s.read_ns AS at_ns, s.read_ns AS until_ns, s.value_id, s.broken_read, s.broken_disk,
  q.foreign_on
FROM slots s JOIN parts q ON q.p = s.p WHERE s.broken_read > 0 OR s.broken_disk > 0
UNION ALL
SELECT CASE WHEN t.served > 0 THEN 'served' ELSE 'on disk' END, t.p, t.off, t.read_ns, t.read_ns,
  t.value_id, t.served, t.stored, t.foreign_on FROM {_RETIMED} t""",
    permitted="CASE WHEN x.value_id IS NULL AND x.foreign_on = 1 "
    "THEN 'others write to this topic: a record that names no send of this run may be theirs' END",
    explain=lambda row: (
        f"{place(row)} ({row['value_id'] or 'unreadable'}) fails its checksum, or has another "
        f"time: in {row['broken_read']} reads and in {row['broken_disk']} replicas' logs."
    ),
    needs=(),
    rests_on=("sends", "reads", "replicas"),
    sub_kinds=("served", "on disk"),
)
