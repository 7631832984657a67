"""A consumer skips no record that was available to it.

A gap in the records that a consumer received, without seek, reset or rebalance, holds nothing
visible. The same applies between the committed offset that a member fetched after a rebalance
and its first record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import DUE, SLOT, Guarantee, place
from urteil.harness.verify.guarantees.losses import LOSSES
from urteil.harness.verify.limits import BUCKET

NO_EVENT = """
NOT EXISTS (SELECT 1 FROM polls e LEFT JOIN parts r ON e.topic_id = r.topic_id
            AND e.partition = r.partition
            WHERE e.event IS NOT NULL AND e.client = g.client AND e.session = g.session
              AND (r.p = g.p OR e.topic_id IS NULL OR e.partition IS NULL)
              AND e.poll <= g.poll
              AND (e.poll >= g.prev_poll
                   OR (e.complete_ns >= g.begin_ns
                       AND COALESCE(e.position_after, -1) <> g.prev_off + 1)))
AND NOT EXISTS (SELECT 1 FROM assignments a JOIN parts r ON a.topic_id = r.topic_id
                AND a.partition = r.partition
                WHERE a.client = g.client AND a.session = g.session AND r.p = g.p
                  AND a.at_ns >= g.prev_read_ns AND a.at_ns <= g.read_ns)
AND COALESCE(g.generation, -1) = COALESCE(g.prev_generation, -1)
"""
"""No seek, reset or rebalance between a read and the one before it, or its pass's begin; one of
which nobody knows the partition is for all. What moved the position to where the pass begins is
none."""

_BEFORE = f"""
SELECT /*+ SHUFFLE_HASH(g) */ g.slot, MAX(s.slot) AS before_slot
FROM (SELECT DISTINCT g.slot FROM gaps g WHERE g.off > g.prev_off + 1) g
JOIN {DUE} s ON s.bucket = g.slot DIV {BUCKET} AND s.slot < g.slot
GROUP BY g.slot
"""
"""The slots after gaps, each with the last visible one before it, if there is one in its bucket."""

_RESUMED = """
SELECT f.p, f.client, f.session, f.pass, f.poll, c.offset - 1 AS prev_off, f.off, f.value_id,
  f.read_ns, MAX(c.complete_ns) AS prev_read_ns
FROM (SELECT r.*, q.p, r.offset AS off, ROW_NUMBER() OVER (PARTITION BY r.client, r.session,
        r.pass, r.generation, q.p ORDER BY r.poll, r.position_in_poll) AS n,
        LAG(COALESCE(r.generation, -1)) OVER (PARTITION BY r.client, r.session, r.pass, q.p
          ORDER BY r.poll, r.position_in_poll) AS prev_generation
      FROM reads r JOIN parts q ON r.topic_id = q.topic_id AND r.partition = q.partition
      JOIN (SELECT DISTINCT m.client, m.session FROM commit_reads m) m
        ON m.client = r.client AND m.session = r.session) f
JOIN commit_reads c ON c.client = f.client AND c.session = f.session
  AND c.topic_id = f.topic_id AND c.partition = f.partition AND c.generation = f.generation
WHERE f.n = 1 AND COALESCE(f.prev_generation, 0) >= 0
  AND c.outcome = 'ok' AND c.offset >= 0 AND c.complete_ns <= f.read_ns
  AND NOT EXISTS (SELECT 1 FROM polls e WHERE e.client = f.client AND e.session = f.session
                  AND e.event IN ('seek', 'reset') AND e.poll <= f.poll
                  AND COALESCE(e.complete_ns, c.invoke_ns) >= c.invoke_ns
                  AND COALESCE(e.topic_id, f.topic_id) = f.topic_id
                  AND COALESCE(e.partition, f.partition) = f.partition)
  AND NOT EXISTS (SELECT 1 FROM assignments a
                  WHERE a.client = f.client AND a.session = f.session
                  AND a.topic_id = f.topic_id AND a.partition = f.partition
                  AND a.at_ns > c.complete_ns AND a.at_ns <= f.read_ns)
GROUP BY f.p, f.client, f.session, f.pass, f.poll, c.offset, f.off, f.value_id, f.read_ns
"""
"""First reads after an assignment; the predecessor is the committed offset fetched then. A new
coordinator may assign a partition again in the same generation. Reads of a member before it
received the assignment are left out."""


def _way(row: Mapping[str, Any]) -> str:
    """From where to where a consumer went; the first record of a pass has none before it."""
    if row["prev_read_ns"] is None:
        return f"stood at offset {row['prev_off'] + 1} and was given offset {row['next_off']} next"
    return f"came from offset {row['prev_off']} to {row['next_off']}"


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
    details=("Records of a transaction whose commit was acknowledged count too.",),
    not_counted=(
        "Moves after a seek, a reset or a rebalance.",
        "Markers and records of other transactions.",
        "Records whose own marker an unclean election or a disk destroyed, so that the producer's "
        "next marker aborts them.",
    ),
    opportunities="""SELECT COUNT(*) AS n FROM reads r JOIN parts q
  ON r.topic_id = q.topic_id AND r.partition = q.partition WHERE q.has_log + q.read_log > 0""",
    violations=f"""
WITH fronts AS (
  SELECT b.p, b.bucket, MAX(b.last_slot) OVER (PARTITION BY b.p ORDER BY b.bucket
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS prior
  FROM (SELECT s.p, s.bucket, MAX(s.slot) AS last_slot
        FROM (SELECT s.p, s.bucket, CASE WHEN s.visible = 1 THEN s.slot END AS slot FROM slots s
              UNION ALL SELECT c.p, c.bucket, c.slot FROM committed c) s
        GROUP BY s.p, s.bucket) b)
SELECT 'gap' AS sub_kind, k.p, k.skipped % {SLOT} AS off,
  COALESCE(k.prev_read_ns, k.read_ns) AS at_ns, k.read_ns AS until_ns,
  k.client, k.session, k.pass, k.poll, k.prev_off, k.off AS next_off,
  k.value_id AS next_value_id, k.prev_read_ns, q.unclean_on, q.unclean_floor,
  q.lost_floor, q.spoilt_ns
FROM (SELECT g.p, g.client, g.session, g.pass, g.poll, g.prev_off, g.off, g.value_id, g.read_ns,
        g.prev_read_ns, MIN(COALESCE(s.before_slot, f.prior)) AS skipped
      FROM gaps g LEFT JOIN ({_BEFORE}) s ON s.slot = g.slot
      LEFT JOIN fronts f ON f.p = g.p AND f.bucket = g.slot DIV {BUCKET}
      WHERE g.off > g.prev_off + 1 AND {NO_EVENT}
      GROUP BY g.p, g.client, g.session, g.pass, g.poll, g.prev_off, g.off, g.value_id, g.read_ns,
        g.prev_read_ns) k
JOIN parts q ON q.p = k.p
WHERE k.skipped > k.p * {SLOT} + k.prev_off AND q.compacted = 0
UNION ALL
SELECT 'after a rebalance', g.p, MIN(s.off), MIN(g.prev_read_ns), MIN(g.read_ns), g.client,
  g.session, g.pass, g.poll, g.prev_off, g.off, g.value_id, MIN(g.prev_read_ns), MIN(q.unclean_on),
  MIN(q.unclean_floor), MIN(q.lost_floor), MIN(q.spoilt_ns)
FROM ({_RESUMED}) g JOIN parts q ON q.p = g.p
JOIN {DUE} s ON s.p = g.p AND s.off > g.prev_off AND s.off < g.off
WHERE g.off > g.prev_off + 1 AND q.compacted = 0 AND s.off >= q.log_start
GROUP BY g.p, g.client, g.session, g.pass, g.poll, g.prev_off, g.off, g.value_id""",
    excuses=LOSSES,
    explain=lambda row: (
        f"{row['client']} {_way(row)} of "
        f"{row['topic']}-{row['partition']}, past the visible record at {place(row)}."
    ),
    tie="j.client, j.pass, j.poll",
    compares_times=True,
    needs=("reads",),
    reads=("slots", "committed", "gaps", "parts", "reads", "polls", "commit_reads", "assignments"),
    rests_on=("reads", "replicas", "polls", "passes", "clients", "commit_reads", "assignments"),
)
