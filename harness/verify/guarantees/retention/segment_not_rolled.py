"""A segment is rolled when it reaches segment.bytes or segment.ms.

Retention and compaction act on closed segments alone: a segment that never rolls is never deleted.
Judged are the segments of final leaders as brokers wrote them: larger than segment.bytes, or
records that span more than segment.ms and ten seconds (records that were sent again have older
times). Closed segments of compacted topics do not count. Segments whose records have no timestamp
(magic 0) roll by times that are not in the evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion
from urteil.harness.verify.reference import Row, SmallHistory, Violation

_APART_MS = 10_000
"""Records that were sent again have older times than those before them."""

_SEGMENTS = """
FROM (SELECT partitions.p, batches.broker, batches.segment_base, SUM(batches.size) AS size,
        MAX(batches.newest_ms) AS newest_ms,
        MIN(CASE WHEN batches.batch_base = batches.first_base
                 THEN batches.newest_ms END) AS first_ms,
        MAX(partitions.segment_ms) AS segment_ms, MAX(partitions.segment_bytes) AS segment_bytes,
        MIN(partitions.compacted) AS compacted
      FROM (SELECT replicas.topic_id, replicas.partition, replicas.broker, replicas.segment_base,
              replicas.batch_base,
              MAX(replicas.batch_bytes) AS size, MAX(replicas.timestamp_ms) AS newest_ms,
              MIN(replicas.batch_base) OVER (
                PARTITION BY replicas.topic_id, replicas.partition, replicas.broker,
                replicas.segment_base) AS first_base
            FROM replicas
            GROUP BY replicas.topic_id, replicas.partition, replicas.broker, replicas.segment_base,
              replicas.batch_base) batches
      JOIN partitions ON partitions.topic_id = batches.topic_id
        AND partitions.partition = batches.partition
      WHERE batches.broker = partitions.final_leader AND partitions.trimmed = 0
        AND partitions.clock_moved = 0 AND partitions.gone = 0
        AND (partitions.segment_ms IS NOT NULL OR partitions.segment_bytes IS NOT NULL)
        AND (partitions.compacted = 0 OR batches.segment_base = partitions.active_base)
      GROUP BY partitions.p, batches.broker, batches.segment_base) segments
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


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No segment of a final leader exceeds segment.bytes, or has records further apart than
    segment.ms; in compacted topics only the active segment is as the broker wrote it."""
    for partition in history.partitions:
        part = partition.part
        if part.trimmed or part.clock_moved or part.gone:
            continue
        for base in {row.segment_base for row in partition.log}:
            if part.compacted and base != part.active_base:
                continue
            records = [row for row in partition.log if row.segment_base == base]
            sizes = {row.batch_base: row.batch_bytes for row in records}
            first = [_time(row) for row in records if row.batch_base == min(sizes)]
            apart_ms = max(map(_time, records)) - max(first)
            is_long = (
                part.segment_ms is not None
                and max(first) >= 0
                and apart_ms > part.segment_ms + _APART_MS
            )
            is_large = (
                not part.compacted
                and part.segment_bytes is not None
                and sum(sizes.values()) > part.segment_bytes
            )
            if is_long or is_large:
                yield partition.violation("not rolled", base)


def _time(record: Row) -> int:
    """A record's timestamp; one without any is older than all."""
    return -1 if record.timestamp_ms is None else int(record.timestamp_ms)


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
    occasion=Occasion.LIMITS,
    opportunities=f"SELECT COUNT(*) AS n {_SEGMENTS}",
    violations=f"""
SELECT 'not rolled' AS sub_kind, segments.p, segments.segment_base AS off,
  CAST(NULL AS BIGINT) AS at_ns, CAST(NULL AS BIGINT) AS until_ns, segments.broker,
  (segments.newest_ms - segments.first_ms) DIV 1000 AS late_s, segments.size AS bytes,
    segments.segment_bytes AS limit_bytes, segments.segment_ms DIV 1000 AS limit_s
{_SEGMENTS}
WHERE (segments.first_ms >= 0 AND segments.newest_ms - segments.first_ms > segments.segment_ms
       + {_APART_MS})
  OR (segments.compacted = 0 AND segments.size > segments.segment_bytes)""",
    explain=_explain,
    tie="finding.broker",
    compares_times=True,
    host_load_excuses=True,
    needs=("logs",),
    reads=("partitions", "replicas", "partitions.clock_moved", "partitions.trimmed"),
    subjects=("partitions.segment_ms", "partitions.segment_bytes"),
    rests_on=("logs", "replicas", "sends", "passes", "states"),
    reference=_reference,
)
