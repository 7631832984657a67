"""The batches of a log that is not compacted cover it completely, each offset once.

A log is examined offset by offset if it has more or fewer records than offsets, or if some offset
has more or fewer records than there are logs: one record may stand there twice in place of
another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.reference import SmallHistory, Violation

_LOGS = "FROM logs_p l JOIN parts q ON q.p = l.p"
_WHOLE = "WHERE q.compacted = 0 AND l.log_end > l.log_start"
_UNEVEN = """
(SELECT DISTINCT s.p FROM slots s LEFT JOIN shared r ON r.slot = s.slot
 WHERE s.expected > 0 AND COALESCE(r.copies, s.copies) <> s.expected)
"""
_ODD = f"""
(SELECT l.p, l.broker, l.log_start, l.log_end {_LOGS}
 LEFT JOIN (SELECT k.p, k.broker, SUM(k.n) AS n FROM epoch_extents k GROUP BY k.p, k.broker) h
  ON h.p = l.p AND h.broker = l.broker
 LEFT JOIN {_UNEVEN} d ON d.p = l.p
 {_WHOLE} AND (COALESCE(h.n, 0) <> l.log_end - l.log_start OR d.p IS NOT NULL))
"""
# The logs that are odd are few, or none: they are taken to the replicas, not the other way.
_OF_ODD = f"""
SELECT /*+ BROADCAST(o) */ o.p, o.broker, o.log_start, r.offset AS off
FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
JOIN {_ODD} o ON o.p = q.p AND o.broker = r.broker
  AND r.offset >= o.log_start AND r.offset < o.log_end
"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """From its start to its end a log has each offset once."""
    for partition in history.partitions:
        for log in () if partition.is_compacted else partition.logs:
            rows = partition.log_of(log.broker)
            start = log.log_start or 0
            offsets = [row.offset for row in rows if start <= row.offset < log.log_end]
            for before, offset in pairwise([start - 1, *offsets]):
                if offset != before + 1:
                    kind = "gap" if offset > before else "overlap"
                    yield partition.violation(kind, before + 1)
            last = max([start - 1, *offsets])
            if last + 1 < log.log_end:
                yield partition.violation("gap", last + 1)


GUARANTEE = Guarantee(
    name="hole",
    rank=10,
    about="offsets are missing from, or repeated in, a log that was not compacted",
    promise="Each record of a partition is assigned a sequential id number called the offset; a "
    "log without compaction has them all.",
    source="Kafka documentation, 1.1 Introduction; 5.4 Log",
    sub_kinds={
        "gap": "an offset is missing",
        "overlap": "an offset occurs again",
    },
    details=("A gap or an overlap between the start and the end of a log.",),
    not_counted=("Compacted topics.",),
    opportunities=f"SELECT COUNT(*) AS n {_LOGS} {_WHOLE}",
    violations=f"""
SELECT CASE WHEN w.off <= w.before_off THEN 'overlap' ELSE 'gap' END AS sub_kind, w.p,
  w.before_off + 1 AS off, CAST(NULL AS BIGINT) AS at_ns, CAST(NULL AS BIGINT) AS until_ns,
  w.broker, w.off AS next_off
FROM (SELECT x.p, x.broker, x.off, COALESCE(LAG(x.off) OVER (
        PARTITION BY x.p, x.broker ORDER BY x.off), x.log_start - 1) AS before_off
      FROM ({_OF_ODD}) x) w
WHERE w.off <> w.before_off + 1
UNION ALL
SELECT 'gap', e.p, e.last_off + 1, NULL, NULL, e.broker, e.log_end
FROM (SELECT d.p, d.broker, d.log_end, COALESCE(y.last_off, d.log_start - 1) AS last_off
      FROM {_ODD} d LEFT JOIN (SELECT x.p, x.broker, MAX(x.off) AS last_off
        FROM ({_OF_ODD}) x GROUP BY x.p, x.broker) y ON y.p = d.p AND y.broker = d.broker) e
WHERE e.last_off + 1 < e.log_end""",
    explain=lambda row: (
        f"In broker {row['broker']}'s log, {place(row)} should follow, but offset "
        f"{row['next_off']} does."
    ),
    tie="j.broker",
    needs=("replicas", "logs"),
    reads=("slots", "shared", "epoch_extents", "parts", "logs_p", "replicas"),
    rests_on=("replicas", "logs"),
    reference=_reference,
)
