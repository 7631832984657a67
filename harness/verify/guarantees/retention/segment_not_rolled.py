"""A segment is rolled when it reaches segment.bytes or segment.ms.

Retention and compaction act on closed segments alone: a segment that never rolls is never deleted.
Judged are the segments of final leaders as brokers wrote them: larger than segment.bytes, or
records that span more than segment.ms and ten seconds (records that were sent again have older
times). Closed segments of compacted topics do not count. Segments whose records have no timestamp
(magic 0) roll by times that are not in the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee

_APART_MS = 10_000
"""Records that were sent again have older times than those before them."""

_SEGMENTS = """
FROM (SELECT q.p, r.broker, r.segment_base, SUM(r.size) AS size, MAX(r.newest_ms) AS newest_ms,
        MIN(CASE WHEN r.batch_base = r.first_base THEN r.newest_ms END) AS first_ms,
        MAX(q.segment_ms) AS segment_ms, MAX(q.segment_bytes) AS segment_bytes,
        MIN(q.compacted) AS compacted
      FROM (SELECT b.topic_id, b.partition, b.broker, b.segment_base, b.batch_base,
              MAX(b.batch_bytes) AS size, MAX(b.timestamp_ms) AS newest_ms,
              MIN(b.batch_base) OVER (
                PARTITION BY b.topic_id, b.partition, b.broker, b.segment_base) AS first_base
            FROM replicas b
            GROUP BY b.topic_id, b.partition, b.broker, b.segment_base, b.batch_base) r
      JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
      WHERE r.broker = q.final_leader AND q.trimmed = 0 AND q.clock_moved = 0 AND q.gone = 0
        AND (q.segment_ms IS NOT NULL OR q.segment_bytes IS NOT NULL)
        AND (q.compacted = 0 OR r.segment_base = q.active_base)
      GROUP BY q.p, r.broker, r.segment_base) s
"""
"""Segments of final leaders as brokers wrote them, where the limits of a segment are known."""


def _explain(row: Mapping[str, Any]) -> str:
    limits = ((row["limit_bytes"], "bytes"), (row["limit_s"], "s"))
    ends = " or ".join(f"{most} {unit}" for most, unit in limits if most is not None)
    return (
        f"The segment of {row['topic']}-{row['partition']} that begins at {row['off']} on broker "
        f"{row['broker']} has {row['bytes']} bytes and records {row['late_s']} s apart: it had to "
        f"roll at {ends}."
    )


GUARANTEE = Guarantee(
    name="segment_not_rolled",
    rank=40,
    split_from="kept_too_long",
    about="a segment outgrew segment.bytes or segment.ms",
    promise="segment.ms and segment.bytes bound a segment.",
    source="Kafka documentation, 3.2 Topic Configs: segment.bytes, segment.ms",
    sub_kinds={
        "not rolled": (
            "a segment of the final leader is larger than segment.bytes, or its records are "
            "further apart than segment.ms and 10 s"
        ),
    },
    not_counted=("Closed segments of compacted topics.",),
    opportunities=f"SELECT COUNT(*) AS n {_SEGMENTS}",
    violations=f"""
SELECT 'not rolled' AS sub_kind, s.p, s.segment_base AS off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, s.broker, (s.newest_ms - s.first_ms) DIV 1000 AS late_s,
  s.size AS bytes, s.segment_bytes AS limit_bytes, s.segment_ms DIV 1000 AS limit_s
{_SEGMENTS}
WHERE (s.first_ms >= 0 AND s.newest_ms - s.first_ms > s.segment_ms + {_APART_MS})
  OR (s.compacted = 0 AND s.size > s.segment_bytes)""",
    explain=_explain,
    tie="j.broker",
    compares_times=True,
    host_load_excuses=True,
    needs=("logs",),
    reads=("parts", "replicas", "parts.clock_moved", "parts.trimmed"),
    subjects=("parts.segment_ms", "parts.segment_bytes"),
    rests_on=("logs", "replicas", "sends", "passes", "states"),
)
