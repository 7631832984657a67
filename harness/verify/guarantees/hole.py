"""The batches of a log that is not compacted cover all of it, each offset once."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import Guarantee, place

_LOGS = """
FROM logs_p l JOIN parts q ON q.p = l.p
WHERE q.compacted = 0 AND l.log_end > l.log_start
"""
_HERE = """
JOIN parts q ON q.p = {log}.p LEFT JOIN replicas r ON r.broker = {log}.broker
  AND r.topic_id = q.topic_id AND r.partition = q.partition
  AND r.offset >= {log}.log_start AND r.offset < {log}.log_end
"""
_ODD = f"""
(SELECT z.p, z.broker, z.log_start, z.log_end FROM (
   SELECT l.p, l.broker, l.log_start, l.log_end, COUNT(r.offset) AS n
   FROM (SELECT l.p, l.broker, l.log_start, l.log_end {_LOGS}) l {_HERE.format(log="l")}
   GROUP BY l.p, l.broker, l.log_start, l.log_end) z
 WHERE z.n <> z.log_end - z.log_start)
"""

GUARANTEE = Guarantee(
    name="hole",
    about="offsets are missing from, or repeated in, a log that was not compacted",
    promise="Each record of a partition is assigned a sequential id number called the offset; a "
    "log without compaction has them all.",
    source="Kafka documentation, 1.1 Introduction; 5.4 Log",
    opportunities=f"SELECT COUNT(*) AS n {_LOGS}",
    violations=f"""
SELECT CASE WHEN w.off <= w.before_off THEN 'overlap' ELSE 'gap' END AS sub_kind, w.p,
  w.before_off + 1 AS off, CAST(NULL AS BIGINT) AS at_ns, CAST(NULL AS BIGINT) AS until_ns,
  w.broker, w.off AS next_off
FROM (SELECT o.p, o.broker, r.offset AS off, COALESCE(LAG(r.offset) OVER (
        PARTITION BY o.p, o.broker ORDER BY r.offset), o.log_start - 1) AS before_off
      FROM {_ODD} o {_HERE.format(log="o")}) w
WHERE w.off <> w.before_off + 1
UNION ALL
SELECT 'gap', e.p, e.last_off + 1, NULL, NULL, e.broker, e.log_end
FROM (SELECT o.p, o.broker, o.log_end,
        COALESCE(MAX(r.offset), MIN(o.log_start) - 1) AS last_off
      FROM {_ODD} o {_HERE.format(log="o")} GROUP BY o.p, o.broker, o.log_end) e
WHERE e.last_off + 1 < e.log_end""",
    explain=lambda row: (
        f"In broker {row['broker']}'s log, {place(row)} should follow, but offset "
        f"{row['next_off']} does."
    ),
    needs=("replicas", "logs"),
    sub_kinds=("gap", "overlap"),
    tie="j.broker",
)
