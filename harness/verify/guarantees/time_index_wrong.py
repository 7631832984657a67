"""A time finds the first record that is not older, and append times never fall.

ListOffsets by time is compared with the final leader's log; offsets below its start are left out,
and a record that was cleaned away since. Replicas clean on their own: of a compacted topic a leader
owes only what all of them have still. `none` needs a record that was acknowledged before, an answer
of who led, and a topic of which nobody deleted records: Apache Kafka looks into a segment below the
start, of which no record is left, and into no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import LOSS, SLOT, Guarantee, place

_ASKED = """
FROM answers a JOIN parts q ON q.p = a.p
WHERE a.kind = 'time' AND a.asked_ms IS NOT NULL AND a.error IS NULL AND q.has_log = 1
"""

_FOUND = f"""
SELECT m.p, m.node, m.at_ns, m.until_ns, m.asked_ms, m.told,
  MIN(m.off) OVER (PARTITION BY m.p ORDER BY m.asked_ms DESC, m.kind
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS first_off, m.kind
FROM (SELECT a.p, a.node, a.invoke_ns AS at_ns, a.complete_ns AS until_ns, a.asked_ms,
        COALESCE(a.offset, -1) AS told, CAST(NULL AS BIGINT) AS off, 1 AS kind {_ASKED}
      UNION ALL
      SELECT q.p, NULL, NULL, NULL, MAX(r.timestamp_ms), NULL, MIN(r.offset), 0
      FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
      JOIN (SELECT DISTINCT a.p {_ASKED}) w ON w.p = q.p
      LEFT JOIN (SELECT DISTINCT a.p, a.asked_ms DIV 1000 AS s {_ASKED}) k
        ON k.p = q.p AND k.s = r.timestamp_ms DIV 1000
      WHERE r.broker = q.final_leader AND r.timestamp_ms IS NOT NULL
        AND r.offset >= q.log_start
      GROUP BY q.p, r.timestamp_ms DIV 1000, CASE WHEN k.p IS NOT NULL THEN r.timestamp_ms END) m
"""
"""Answers, each with the first offset of its time or later. Of the records, one for each time in
the seconds that somebody asked for, and one for each other second."""

_LED = """
SELECT a.p, a.node, a.invoke_ns, MAX(CASE WHEN s.leader = a.node THEN 1 ELSE 0 END) AS led
FROM answers a JOIN spans s
  ON s.p = a.p AND s.begin_ns <= a.complete_ns AND s.end_ns > a.invoke_ns
WHERE a.kind = 'time' GROUP BY a.p, a.node, a.invoke_ns
"""
"""Whether who answered led then, by ZooKeeper: another one may not know what was acknowledged."""

_BACK = """
FROM (SELECT q.p, r.offset AS off, r.value_id, r.leader_epoch, r.timestamp_ms,
        LAG(r.timestamp_ms) OVER (PARTITION BY q.p, r.leader_epoch ORDER BY r.offset) AS prev_ms
      FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
      WHERE r.broker = q.final_leader AND q.append_time = 1 AND q.clock_moved = 0
        AND r.timestamp_ms IS NOT NULL) b
"""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "time went back":
        return (
            f"The append time at {place(row)} is {row['asked_ms']}, below {row['first_off']} right "
            f"before it in leader epoch {row['leader_epoch']}."
        )
    told = "no offset" if row["told"] < 0 else f"offset {row['told']}"
    return (
        f"Asked for time {row['asked_ms']} in {row['topic']}-{row['partition']}, broker "
        f"{row['node']} answered {told}; by the log it is {row['first_off']}."
    )


GUARANTEE = Guarantee(
    name="time_index_wrong",
    about="a time was looked up wrongly, or append times fell",
    promise="ListOffsets answers the offset of the first message whose timestamp is greater than "
    "or equal to the given one; LogAppendTime never decreases within a leader's log.",
    source="KIP-79; KIP-32",
    opportunities=f"SELECT SUM(u.n) AS n FROM (SELECT COUNT(*) AS n {_ASKED} "
    f"UNION ALL SELECT COUNT(*) AS n {_BACK} WHERE b.prev_ms IS NOT NULL) u",
    violations=f"""
SELECT CASE WHEN f.told < 0 THEN 'none' WHEN f.first_off < f.told THEN 'too late'
    ELSE 'too early' END AS sub_kind,
  f.p, f.told AS off, f.at_ns, f.until_ns, h.value_id, f.node, f.asked_ms, f.told, f.first_off,
  CAST(NULL AS INT) AS leader_epoch, q.unclean_on, q.unclean_floor,
  q.lost_floor, q.spoilt_ns
FROM ({_FOUND}) f JOIN parts q ON q.p = f.p
LEFT JOIN (SELECT s.slot, s.value_id FROM slots s WHERE s.on_leader = 1) h
  ON h.slot = f.p * {SLOT} + GREATEST(f.told, 0)
LEFT JOIN (SELECT v.first_slot, v.complete_ns FROM vals v
           WHERE v.outcome = 'ok' AND v.acks = -1 AND v.first_slot IS NOT NULL) e
  ON e.first_slot = f.p * {SLOT} + f.first_off
LEFT JOIN (SELECT s.slot FROM slots s JOIN parts c ON c.p = s.p AND c.compacted = 1
           WHERE s.on_leader = 1 AND s.copies >= s.expected) w
  ON w.slot = f.p * {SLOT} + f.first_off
LEFT JOIN ({_LED}) d ON d.p = f.p AND d.node = f.node AND d.invoke_ns = f.at_ns
WHERE f.kind = 1 AND (
  (f.told < 0 AND q.cut_to IS NULL AND f.first_off IS NOT NULL AND e.complete_ns < f.at_ns
    AND COALESCE(d.led, 1) = 1
    AND (q.compacted = 0 OR w.slot IS NOT NULL))
  OR (f.told >= q.log_start AND f.first_off < f.told AND (q.compacted = 0 OR w.slot IS NOT NULL))
  OR (f.told >= q.log_start AND h.slot IS NOT NULL
      AND (f.first_off IS NULL OR f.first_off > f.told)))
UNION ALL
SELECT 'time went back', b.p, b.off, NULL, NULL, b.value_id, NULL, b.timestamp_ms, b.off,
  b.prev_ms, b.leader_epoch, 0, 0, NULL, NULL {_BACK} WHERE b.prev_ms > b.timestamp_ms""",
    permitted=LOSS,
    explain=_explain,
    needs=("replicas", "logs"),
    rests_on=("offset_answers", "replicas", "logs", "sends", "states"),
    sub_kinds=("too late", "too early", "none", "time went back"),
    tie="j.asked_ms, j.node",
)
