"""The value that a table built from a compacted topic shows for a key, against the last record
of that key."""

from __future__ import annotations

FLOORS = """
LEFT JOIN floors f ON f.p = k.p AND k.invoke_ns >= f.from_ns AND k.invoke_ns < f.to_ns
"""

WHOSE = """k.acks, k.n_reads, q.unclean_on, COALESCE(f.any_floor, 0) AS any_floor,
  COALESCE(f.unclean_floor, 0) AS unclean_floor, f.lost_floor"""

COMMITTED = "LEFT JOIN committed m ON m.value_id = k.value_id"
UNSERVED = """(k.log_slots = 1 AND (k.unserved = 1
  OR (m.value_id IS NOT NULL AND k.rc_asked = 1 AND k.rc_whole = 0)))"""
"""Of a value that the final leader has once: a complete final pass over it did not deliver it; of
one in a transaction that was committed, one of readers of committed records, too."""

SHOWN = """
SELECT k.p, k.key, k.off, k.value_id, 'in the log' AS place, CAST(0 AS BIGINT) AS took_ns
FROM keyed k JOIN parts q ON q.p = k.p
WHERE q.has_log = 1 AND k.log_slots > 0 AND k.off = k.shown_off AND k.tombstone = 0
UNION ALL
SELECT s.p, s.key, k.off, k.value_id, 'in a pass', s.took_ns
FROM (SELECT k.p, k.key, r.client, r.session, r.pass, MAX(r.offset) AS off,
        MIN(b.end_ns - b.begin_ns) AS took_ns
      FROM keyed k JOIN reads r ON r.value_id = k.value_id
      JOIN passes b ON b.client = r.client AND b.session = r.session AND b.pass = r.pass
        AND b.topic_id = r.topic_id AND b.partition = r.partition
      WHERE b.final AND b.complete AND k.last_off >= b.from_offset AND k.last_off < b.to_offset
        AND b.client NOT IN (SELECT d.client FROM damaged d)
      GROUP BY k.p, k.key, r.client, r.session, r.pass) s
JOIN keyed k ON k.p = s.p AND k.key = s.key AND k.off = s.off AND k.tombstone = 0
"""
"""The value that a key has in the end: in the final leader's log, and in each final pass."""


def older(latest_is_tombstone: int, *, excused: str = "1 = 1") -> str:
    """Keys that show a value from before their last acknowledged record, once each."""
    return f"""
SELECT MIN(h.place) AS sub_kind, h.p, h.off, MIN(k.invoke_ns) AS at_ns,
  MIN(k.complete_ns) AS until_ns, h.value_id, h.key, MIN(k.value_id) AS latest_value_id,
  MIN(k.off) AS latest_off, MIN(k.acks) AS acks, MIN(k.n_reads) AS n_reads,
  MIN(q.unclean_on) AS unclean_on, MIN(COALESCE(f.any_floor, 0)) AS any_floor,
  MIN(COALESCE(f.unclean_floor, 0)) AS unclean_floor, MIN(f.lost_floor) AS lost_floor
FROM ({SHOWN}) h JOIN keyed k ON k.p = h.p AND k.key = h.key JOIN parts q ON q.p = k.p {FLOORS}
WHERE k.outcome = 'ok' AND k.off = k.last_off AND k.open_n = 0 AND h.off < k.off
  AND k.tombstone = {latest_is_tombstone} AND k.off >= q.log_start AND {excused}
GROUP BY h.p, h.off, h.value_id, h.key"""


def latest(tombstone: int) -> str:
    """Keys whose last record is known: nothing is unresolved about them."""
    return f"""
SELECT COUNT(*) AS n FROM keyed k JOIN parts q ON q.p = k.p
WHERE k.outcome = 'ok' AND k.off = k.last_off AND k.open_n = 0 AND k.tombstone = {tombstone}
  AND k.off >= q.log_start"""
