"""The batches of a log that is not compacted cover it completely, each offset once.

A log is examined offset by offset if it has more or fewer records than offsets, or if some offset
has more or fewer records than there are logs: one record may occur twice in place of another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.reference import SmallHistory, Violation

_LOGS = "FROM logs_p JOIN partitions ON partitions.p = logs_p.p"
_NOT_COMPACTED = "WHERE partitions.compacted = 0 AND logs_p.log_end > logs_p.log_start"
_UNEVEN = """
(SELECT DISTINCT slots.p FROM slots LEFT JOIN shared ON shared.slot = slots.slot
 WHERE slots.expected > 0 AND COALESCE(shared.copies, slots.copies) <> slots.expected)
"""
_SUSPECT_LOGS = f"""
(SELECT logs_p.p, logs_p.broker, logs_p.log_start, logs_p.log_end {_LOGS}
 LEFT JOIN (SELECT extents.p, extents.broker, SUM(extents.n) AS n FROM epoch_extents extents
              GROUP BY extents.p, extents.broker) extents
  ON extents.p = logs_p.p AND extents.broker = logs_p.broker
 LEFT JOIN {_UNEVEN} uneven_logs ON uneven_logs.p = logs_p.p
 {_NOT_COMPACTED} AND (COALESCE(extents.n, 0) <> logs_p.log_end - logs_p.log_start
               OR uneven_logs.p IS NOT NULL))
"""
# Logs with a wrong count are few, or none: they are broadcast, not the replicas.
_SUSPECT_OFFSETS = f"""
SELECT /*+ BROADCAST(suspect_logs) */ suspect_logs.p, suspect_logs.broker, suspect_logs.log_start,
  replicas.offset AS off
FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
  AND partitions.partition = replicas.partition
JOIN {_SUSPECT_LOGS} suspect_logs ON suspect_logs.p = partitions.p
  AND suspect_logs.broker = replicas.broker
  AND replicas.offset >= suspect_logs.log_start AND replicas.offset < suspect_logs.log_end
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
    opportunities=f"SELECT COUNT(*) AS n {_LOGS} {_NOT_COMPACTED}",
    violations=f"""
SELECT CASE WHEN neighbours.off <= neighbours.before_off THEN 'overlap' ELSE 'gap' END AS sub_kind,
  neighbours.p, neighbours.before_off + 1 AS off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, neighbours.broker, neighbours.off AS next_off
FROM (SELECT p, broker, off, COALESCE(LAG(off) OVER (
        PARTITION BY p, broker ORDER BY off), log_start - 1) AS before_off
      FROM ({_SUSPECT_OFFSETS}) suspect_offsets) neighbours
WHERE neighbours.off <> neighbours.before_off + 1
UNION ALL
SELECT 'gap', p, last_off + 1, NULL, NULL, broker, log_end
FROM (SELECT suspect_logs.p, suspect_logs.broker, suspect_logs.log_end,
        COALESCE(last_offsets.last_off, suspect_logs.log_start - 1) AS last_off
      FROM {_SUSPECT_LOGS} suspect_logs LEFT JOIN (SELECT p, broker, MAX(off) AS last_off
        FROM ({_SUSPECT_OFFSETS}) suspect_offsets GROUP BY p, broker) last_offsets
          ON last_offsets.p = suspect_logs.p
          AND last_offsets.broker = suspect_logs.broker) log_tails
WHERE last_off + 1 < log_end""",
    explain=lambda row: (
        f"In broker {row['broker']}'s log, {place(row)} should follow, but offset "
        f"{row['next_off']} does."
    ),
    tie="finding.broker",
    needs=("replicas", "logs"),
    reads=("slots", "shared", "epoch_extents", "partitions", "logs_p", "replicas"),
    rests_on=("replicas", "logs"),
    reference=_reference,
)
