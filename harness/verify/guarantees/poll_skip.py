"""A consumer passes no record that it could have been given.

A gap in what a consumer received, without seek, reset or rebalance, must hold nothing visible.
"""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import LOSS, SLOT, Guarantee, place

NO_EVENT = """
NOT EXISTS (SELECT 1 FROM polls e JOIN parts r ON e.topic_id = r.topic_id
            AND e.partition = r.partition
            WHERE e.event IS NOT NULL AND e.client = g.client AND e.session = g.session
              AND r.p = g.p AND e.poll >= g.prev_poll AND e.poll <= g.poll)
AND COALESCE(g.generation, -1) = COALESCE(g.prev_generation, -1)
"""

GUARANTEE = Guarantee(
    name="poll_skip",
    about="a consumer moved past a visible record without delivering it",
    promise="A consumer instance sees records in the order they are stored in the log, and its "
    "position advances over what it was given.",
    source="Kafka documentation, 1.1 Introduction: guarantees; 4.5 The Consumer",
    opportunities="SELECT COUNT(*) AS n FROM reads r",
    violations=f"""
WITH fronts AS (
  SELECT b.p, b.bucket, MAX(b.last_slot) OVER (PARTITION BY b.p ORDER BY b.bucket
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS prior
  FROM (SELECT s.p, s.bucket, MAX(CASE WHEN s.visible = 1 THEN s.slot END) AS last_slot
        FROM slots s GROUP BY s.p, s.bucket) b)
SELECT 'gap' AS sub_kind, k.p, k.skipped % {SLOT} AS off,
  COALESCE(k.prev_read_ns, k.read_ns) AS at_ns, k.read_ns AS until_ns,
  k.client, k.session, k.pass, k.poll, k.prev_off, k.off AS next_off,
  k.value_id AS next_value_id, q.unclean_on, q.unclean_floor,
  q.lost_floor, q.lost_ns
FROM (SELECT g.p, g.client, g.session, g.pass, g.poll, g.prev_off, g.off, g.value_id, g.read_ns,
        g.prev_read_ns, MIN(COALESCE(s.before_slot, f.prior)) AS skipped
      FROM gaps g JOIN slots s ON s.slot = g.slot
      LEFT JOIN fronts f ON f.p = s.p AND f.bucket = s.bucket
      WHERE g.off > g.prev_off + 1 AND {NO_EVENT}
      GROUP BY g.p, g.client, g.session, g.pass, g.poll, g.prev_off, g.off, g.value_id, g.read_ns,
        g.prev_read_ns) k
JOIN parts q ON q.p = k.p
WHERE k.skipped > k.p * {SLOT} + k.prev_off AND q.compacted = 0""",
    permitted=LOSS,
    explain=lambda row: (
        f"{row['client']} came from offset {row['prev_off']} to {row['next_off']} of "
        f"{row['topic']}-{row['partition']}, past the visible record at {place(row)}."
    ),
    needs=("reads", "replicas"),
    sub_kinds=("gap",),
    tie="j.client, j.pass, j.poll",
)
