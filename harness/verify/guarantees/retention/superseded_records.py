"""Records of a compacted log that a later record of their key supersedes, after a due cleaning.

The cleaner selects a log when its dirty share, the bytes behind the last cleaning, is above
min.cleanable.dirty.ratio. A segment with a record whose key an earlier segment still has was never
cleaned, or the earlier record would be gone: such segments are dirty. Segments that were closed
longer before the end than the cleaner may need hold only records that it may clean. Where the dirty
share of these alone is above the ratio, that of the log was too, and a cleaning is missing.

The cleaner leaves records of open transactions, so logs with transactions are not judged.
"""

from __future__ import annotations

from urteil.harness.verify.reference import Partition

SLACK_NS = 10_000_000_000
"""The cleaner may clean other logs first."""

_CLOSED = f"""
(SELECT partitions.p, replicas.broker, MAX(replicas.segment_base) AS base
 FROM replicas JOIN records ON records.value_id = replicas.value_id
 JOIN partitions ON partitions.topic_id = replicas.topic_id
   AND partitions.partition = replicas.partition
 WHERE replicas.broker = partitions.final_leader AND partitions.compacted = 1
   AND partitions.dirty_ratio IS NOT NULL AND partitions.late_ns IS NOT NULL
   AND partitions.trimmed = 0 AND partitions.clock_moved = 0 AND partitions.gone = 0
   AND records.outcome = 'ok' AND records.complete_ns + partitions.late_ns + partitions.min_lag_ns
   + {SLACK_NS} < partitions.ends_ns
   AND partitions.calm_ns + partitions.late_ns + {SLACK_NS} < partitions.ends_ns
 GROUP BY partitions.p, replicas.broker
 HAVING MAX(CASE WHEN replicas.transactional THEN 1 ELSE 0 END) = 0)
"""
"""Compacted logs of final leaders, each with the first offset behind the segments that were closed
in time: a record that was acknowledged that long before the end is behind them."""

ROLLED = f"""
{_CLOSED} closed JOIN partitions ON partitions.p = closed.p
WHERE partitions.active_base > partitions.log_start
"""
"""Of these, logs with several segments; cleaned segments may be merged into one."""

SUPERSEDED = f"""
(SELECT segments.p, segments.broker, SUM(segments.size) AS size,
   SUM(segments.dirty * segments.size) AS dirty_size, MIN(segments.off) AS off
 FROM (SELECT batches.p, batches.broker, batches.segment_base, SUM(batches.size) AS size,
         MAX(batches.dirty) AS dirty, MIN(batches.off) AS off
       FROM (SELECT keyed_rows.p, keyed_rows.broker, keyed_rows.segment_base, keyed_rows.batch_base,
               MAX(keyed_rows.batch_bytes) AS size, MIN(keyed_rows.older_off) AS off,
               MAX(CASE WHEN keyed_rows.older_off IS NULL THEN 0 ELSE 1 END) AS dirty
             FROM (SELECT closed.p, closed.broker, replicas.segment_base, replicas.batch_base,
                     replicas.batch_bytes, LAG(replicas.offset) OVER (
                       PARTITION BY closed.p, closed.broker, replicas.key
                       ORDER BY replicas.offset) AS older_off
                   FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
                     AND partitions.partition = replicas.partition
                   JOIN {_CLOSED} closed ON closed.p = partitions.p
                     AND closed.broker = replicas.broker
                   WHERE replicas.segment_base < closed.base AND replicas.key IS NOT NULL)
               keyed_rows
             GROUP BY keyed_rows.p, keyed_rows.broker, keyed_rows.segment_base,
               keyed_rows.batch_base) batches
       GROUP BY batches.p, batches.broker, batches.segment_base) segments
 GROUP BY segments.p, segments.broker)
"""
"""The closed segments of each such log: their bytes, those of dirty segments, and the first record
that a later one supersedes."""


def find_superseded(partition: Partition) -> int | None:
    """The first record of the final leader's log that a due cleaning had to remove."""
    part = partition.part
    if not part.compacted or part.dirty_ratio is None or part.trimmed or part.clock_moved:
        return None
    due_ns = part.ends_ns - part.late_ns - SLACK_NS
    bases = set()
    for row in partition.log:
        send = partition.history.sends_by_value.get(row.value_id)
        if send is not None and send.outcome == "ok":
            if row.transactional:
                return None
            if send.complete_ns + part.min_lag_ns < due_ns:
                bases.add(row.segment_base)
    if not bases or part.calm_ns >= due_ns:
        return None
    sizes: dict[tuple[int, int], int] = {}
    dirty, superseded, last_off = set(), [], dict[str, int]()
    for row in partition.log:
        if row.segment_base < max(bases) and row.key is not None:
            sizes[row.segment_base, row.batch_base] = row.batch_bytes
            if row.key in last_off:
                dirty.add(row.segment_base)
                superseded.append(last_off[row.key])
            last_off[row.key] = row.offset
    dirty_size = sum(size for (segment, _), size in sizes.items() if segment in dirty)
    is_due = dirty_size > part.dirty_ratio * sum(sizes.values())
    return min(superseded) if superseded and is_due else None
