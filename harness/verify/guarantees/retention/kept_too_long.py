"""Records leave the log when retention's time or size limit has been reached, and compacted logs
are cleaned when enough of them is dirty.

`too old`: the newest timestamp of a closed segment of the final leader, and of all segments before
it, plus retention.ms, and the last healing, lie before the end of the run by more than the
brokers' check interval, their initial delay and 5 s. Judged where that interval is known, no
administrator changed how long records stay, and no clock was moved. `too large`: for the same time
the log was two segments larger than retention.bytes. `kept on`: a leader reported a log start
although a shorter retention.ms, set for a while together with segment.ms, must have deleted records
there. `superseded`: a compacted log was not cleaned (superseded_records.py). Segments whose records
have no timestamp (magic 0) expire by times that are not in the evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion
from urteil.harness.verify.guarantees.retention.superseded_records import (
    ROLLED,
    SUPERSEDED,
    find_superseded,
)
from urteil.harness.verify.reference import Partition, Row, SmallHistory, Violation

_SLACK_NS = 5_000_000_000

_UP_TO_SEGMENT = """OVER (PARTITION BY partitions.p, replicas.broker ORDER BY replicas.segment_base
     ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"""

_SEGMENTS = f"""
(SELECT partitions.p, replicas.broker, replicas.segment_base,
   MAX(MAX(replicas.timestamp_ms)) {_UP_TO_SEGMENT} AS newest_ms,
   MIN(COALESCE(MAX(replicas.timestamp_ms), -1)) {_UP_TO_SEGMENT} AS oldest_ms,
   MAX(partitions.retention_ns) AS retention_ns, MAX(partitions.late_ns) AS late_ns,
   MAX(partitions.ends_ns) AS ends_ns, MAX(partitions.calm_ns) AS calm_ns
 FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
   AND partitions.partition = replicas.partition
 WHERE replicas.broker = partitions.final_leader AND partitions.late_ns IS NOT NULL
   AND partitions.retention_configured = 1 AND (partitions.compacted = 0 OR partitions.deletes = 1)
   AND partitions.trimmed = 0 AND partitions.clock_moved = 0 AND partitions.gone = 0
   AND replicas.segment_base < partitions.active_base
 GROUP BY partitions.p, replicas.broker, replicas.segment_base)
"""
"""Closed segments of the final leader where retention by time is known. A broker deletes from the
first segment on, so a segment is as young as the youngest up to it."""

_SIZES = f"""
(SELECT segments.p, segments.broker, MIN(segments.segment_base) AS base, SUM(segments.size) AS size,
   MAX(CASE WHEN segments.n = 1 THEN segments.size ELSE 0 END) AS first_size,
   MAX(segments.retention_bytes) AS retention_bytes
 FROM (SELECT batches.p, batches.broker, batches.segment_base, SUM(batches.size) AS size,
         MAX(batches.retention_bytes) AS retention_bytes,
         ROW_NUMBER() OVER (PARTITION BY batches.p ORDER BY batches.segment_base) AS n
       FROM (SELECT partitions.p, replicas.broker, replicas.segment_base, replicas.batch_base,
               MAX(replicas.batch_bytes) AS size,
               MAX(partitions.retention_bytes) AS retention_bytes
             FROM replicas JOIN records ON records.value_id = replicas.value_id
             JOIN partitions ON partitions.topic_id = replicas.topic_id
               AND partitions.partition = replicas.partition
             WHERE replicas.broker = partitions.final_leader AND partitions.late_ns IS NOT NULL
               AND partitions.retention_bytes >= 0 AND partitions.compacted = 0
               AND partitions.trimmed = 0 AND partitions.gone = 0 AND records.outcome = 'ok'
               AND records.complete_ns + partitions.late_ns + {_SLACK_NS} < partitions.ends_ns
               AND partitions.calm_ns + partitions.late_ns + {_SLACK_NS} < partitions.ends_ns
             GROUP BY partitions.p, replicas.broker, replicas.segment_base,
               replicas.batch_base) batches
       GROUP BY batches.p, batches.broker, batches.segment_base) segments
 GROUP BY segments.p, segments.broker)
"""
"""Logs of final leaders whose retention by size is known: the bytes acknowledged long before the
end, and the bytes in the oldest segment."""

_SHORTENED = f"""
FROM (SELECT p, node, at_ns, until_ns, off, short_ns, kind,
        MAX(acked) OVER (PARTITION BY p ORDER BY due_ns, kind
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS old_off
      FROM (SELECT answers.p, answers.node, answers.invoke_ns AS at_ns,
              answers.complete_ns AS until_ns, answers.offset AS off,
              partitions.short_ns, answers.invoke_ns - partitions.short_ns
              - partitions.short_segment_ns - partitions.late_ns - {_SLACK_NS}
                AS due_ns, CAST(NULL AS BIGINT) AS acked, 1 AS kind
            FROM answers JOIN partitions ON partitions.p = answers.p
            WHERE answers.kind = 'earliest' AND answers.error IS NULL AND partitions.compacted = 0
              AND partitions.clock_moved = 0 AND partitions.gone = 0
              AND answers.invoke_ns > partitions.short_from_ns + partitions.short_ns
              + partitions.short_segment_ns + partitions.late_ns
                + {_SLACK_NS}
              AND answers.complete_ns < partitions.short_until_ns
            UNION ALL
            SELECT ticks.p, NULL, NULL, NULL, NULL, NULL, ticks.last_ns, ticks.last_off, 0
            FROM ticks JOIN partitions ON partitions.p = ticks.p
              AND partitions.short_ns IS NOT NULL) events) answered_starts
WHERE answered_starts.kind = 1
"""
"""Log starts that leaders reported while a shorter retention and segment.ms were in effect, each
with the last offset acknowledged so long before that it had to be deleted."""

_EXPIRED = f"""
FROM records JOIN partitions ON partitions.p = records.sent_p CROSS JOIN settings
WHERE records.sent = 1 AND records.outcome = 'ok' AND partitions.late_ns IS NOT NULL
  AND partitions.retention_configured = 1 AND (partitions.compacted = 0 OR partitions.deletes = 1)
  AND partitions.trimmed = 0 AND partitions.clock_moved = 0 AND settings.wall_ns IS NOT NULL
  AND records.timestamp_ms * 1000000 - settings.wall_ns + partitions.retention_ns
  + partitions.late_ns + {_SLACK_NS} < partitions.ends_ns
"""


def _explain(row: Mapping[str, Any]) -> str:
    where, broker = f"{row['topic']}-{row['partition']}", row["broker"]
    sentences = {
        "too old": f"The segment of {where} that begins at {row['off']} is still on broker "
        f"{broker}, {row['late_s']} s after its last record was older than retention.ms.",
        "too large": f"The log of {where} on broker {broker} had {row['bytes']} bytes long before "
        f"the end, two segments more than retention.bytes, {row['limit_bytes']}.",
        "kept on": f"Broker {broker} reported that {where} begins at {row['off']}, although "
        f"retention.ms was {row['limit_s']} s for a while, and all records up to offset "
        f"{row['start']} were older.",
        "superseded": f"The log of {where} on broker {broker} still has the record at "
        f"{row['off']}, although a later one of its key lies in a segment that was closed long "
        f"before the end: {row['bytes']} of {row['limit_bytes']} bytes were dirty, more than "
        "min.cleanable.dirty.ratio, and were not cleaned.",
    }
    return sentences[row["sub_kind"]]


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """At each check of their logs, brokers delete closed segments older than retention.ms and
    entire segments beyond retention.bytes, and clean dirty logs."""
    for partition in history.partitions:
        part = partition.part
        if part.late_ns is None or part.gone:
            continue
        wait_ns = part.late_ns + _SLACK_NS
        superseded = find_superseded(partition)
        if superseded is not None:
            yield partition.violation("superseded", superseded, None, partition.final_leader)
        is_undisturbed = part.calm_ns + wait_ns < part.ends_ns
        segments = {row.segment_base for row in partition.log}
        if is_undisturbed and not part.trimmed:
            newest_ms = 0
            for base in sorted(segments):
                times_ms = [row.timestamp_ms for row in partition.log if row.segment_base == base]
                segment_ms = max((at_ms for at_ms in times_ms if at_ms is not None), default=-1)
                if segment_ms < 0:
                    break
                newest_ms = max(newest_ms, segment_ms)
                if base < part.active_base and _is_old(history, part, newest_ms, wait_ns):
                    yield partition.violation("too old", base, None, partition.final_leader)
            first = _outgrown_from(partition, part.ends_ns - wait_ns)
            if first is not None:
                yield partition.violation("too large", first, None, partition.final_leader)
        if part.short_ns is not None and not part.compacted and not part.clock_moved:
            yield from _kept_on(partition, wait_ns)


def _is_old(history: SmallHistory, part: Row, newest_ms: int, wait_ns: int) -> bool:
    """Whether a segment whose newest record has this timestamp had to be deleted before the end."""
    wall_ns = history.run_settings.wall_ns
    if wall_ns is None or not part.retention_configured or part.clock_moved:
        return False
    if part.compacted and not part.deletes:
        return False
    due_ns = newest_ms * 1_000_000 - wall_ns + part.retention_ns
    return bool(due_ns + wait_ns < part.ends_ns and part.retention_ns < part.ends_ns)


def _outgrown_from(partition: Partition, until_ns: int) -> int | None:
    """The first segment of a log that had two segments more than retention.bytes at a time, by the
    batches with a record that was acknowledged before."""
    limit = partition.part.retention_bytes
    if limit is None or limit < 0 or partition.part.compacted:
        return None
    batches = {}
    for row in partition.log:
        send = partition.history.sends_by_value.get(row.value_id)
        if send is not None and send.outcome == "ok" and send.complete_ns < until_ns:
            batches[row.segment_base, row.batch_base] = row.batch_bytes
    sizes: dict[int, int] = defaultdict(int)
    for (segment, _), size in batches.items():
        sizes[segment] += size
    first = min(sizes, default=0)
    return first if sizes and sum(sizes.values()) - 2 * sizes[first] >= limit else None


def _kept_on(partition: Partition, wait_ns: int) -> Iterator[Violation]:
    """Log starts below records that a shorter retention, in effect for a while, had to delete."""
    part = partition.part
    age_ns = part.short_ns + part.short_segment_ns + wait_ns
    for answer in partition.derived_rows("answers"):
        is_while = (
            answer.invoke_ns > part.short_from_ns + age_ns
            and answer.complete_ns < part.short_until_ns
        )
        old = [
            send.offset
            for send in partition.sends
            if send.outcome == "ok" and send.acks == -1
            if send.complete_ns <= answer.invoke_ns - age_ns
        ]
        is_start = answer.kind == "earliest" and answer.error is None
        if is_start and is_while and max(old, default=-1) >= answer.offset:
            subject = (answer.node, answer.invoke_ns)
            yield partition.violation("kept on", answer.offset, None, *subject)


GUARANTEE = Guarantee(
    name="kept_too_long",
    rank=20,
    about="records outlived the limits of retention, or a due compaction",
    promise="With the delete policy old segments are discarded when their retention time or size "
    "limit has been reached; with the compact policy a log is cleaned when more of it is dirty "
    "than min.cleanable.dirty.ratio.",
    source="Kafka documentation, 3.2 Topic Configs: retention.ms, retention.bytes, "
    "min.cleanable.dirty.ratio",
    sub_kinds={
        "too old": (
            "a closed segment of the final leader outlived its retention.ms, one check interval "
            "of the brokers and 5 s"
        ),
        "too large": (
            "the log was two segments larger than retention.bytes for so long before the end"
        ),
        "kept on": (
            "a leader returned a begin although a shorter retention.ms, set for a while with "
            "segment.ms, had to delete it"
        ),
        "superseded": (
            "a compacted log of the final leader has two records of a key in segments that were "
            "closed min.compaction.lag.ms, one round of the cleaner and 10 s before the end, and "
            "more of these segments is dirty than min.cleanable.dirty.ratio"
        ),
    },
    not_counted=(
        "`too large` of compacted topics.",
        "`kept on`: the first 10 s, records not older than both settings, one check interval and "
        "5 s, unacknowledged acts, and times with a fault.",
        "Topics without a retention.ms (or retention.bytes) of their own, and brokers whose "
        "`log.retention.check.interval.ms` is unknown. Of compacted topics also those whose "
        "`log.cleaner.backoff.ms` is unknown, or where a disk was damaged.",
        "`superseded` where min.cleanable.dirty.ratio is not set, and of logs with transactions.",
        "Changed settings, clock faults, and segments that expired less than that time before the "
        "end or the last healing.",
    ),
    occasion=Occasion.LIMITS,
    opportunities=f"""
SELECT SUM(opportunities.n) AS n FROM (
  SELECT COUNT(*) AS n {_EXPIRED}
  UNION ALL SELECT COUNT(*) FROM {_SIZES} log_sizes
  UNION ALL SELECT COUNT(*) FROM {ROLLED}
  UNION ALL SELECT COUNT(*) {_SHORTENED}) opportunities""",
    violations=f"""
SELECT 'too old' AS sub_kind, segments.p, segments.segment_base AS off,
  CAST(NULL AS BIGINT) AS at_ns, CAST(NULL AS BIGINT) AS until_ns, segments.broker,
  CAST(NULL AS BIGINT) AS start, (segments.ends_ns - segments.newest_ms * 1000000 + settings.wall_ns
                                  - segments.retention_ns) DIV 1000000000 AS late_s,
  CAST(NULL AS BIGINT) AS bytes, CAST(NULL AS BIGINT) AS limit_bytes,
  CAST(NULL AS BIGINT) AS limit_s
FROM {_SEGMENTS} segments CROSS JOIN settings
WHERE settings.wall_ns IS NOT NULL AND segments.retention_ns < segments.ends_ns
  AND segments.oldest_ms >= 0 AND segments.newest_ms * 1000000 - settings.wall_ns
  + segments.retention_ns + segments.late_ns + {_SLACK_NS} < segments.ends_ns
  AND segments.calm_ns + segments.late_ns + {_SLACK_NS} < segments.ends_ns
UNION ALL
SELECT 'too large', p, base, NULL, NULL, broker, NULL, NULL, size, retention_bytes, NULL
FROM {_SIZES} log_sizes WHERE size - 2 * first_size >= retention_bytes
UNION ALL
SELECT 'superseded', cleanable_logs.p, cleanable_logs.off, NULL, NULL, cleanable_logs.broker, NULL,
  NULL, cleanable_logs.dirty_size, cleanable_logs.size, NULL
FROM {SUPERSEDED} cleanable_logs JOIN partitions ON partitions.p = cleanable_logs.p
WHERE cleanable_logs.dirty_size > partitions.dirty_ratio * cleanable_logs.size
UNION ALL
SELECT 'kept on', answered_starts.p, answered_starts.off, answered_starts.at_ns,
  answered_starts.until_ns, answered_starts.node, answered_starts.old_off, NULL, NULL, NULL,
  answered_starts.short_ns DIV 1000000000 {_SHORTENED}
    AND answered_starts.old_off >= answered_starts.off""",
    explain=_explain,
    tie="finding.broker",
    compares_times=True,
    host_load_excuses=True,
    needs=("logs",),
    reads=(
        "records",
        "ticks",
        "partitions",
        "answers",
        "settings",
        "replicas",
        "partitions.calm_ns",
        "partitions.clock_moved",
        "partitions.short_from_ns",
        "partitions.trimmed",
    ),
    rests_on=("logs", "replicas", "sends", "passes", "states", "offset_answers"),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.broker, violation.at_ns)",
)
