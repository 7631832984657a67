"""Records leave the log when retention's time or size limit has been reached.

`too old`: the newest timestamp of a closed segment of the final leader plus retention.ms, and
the last healing, lie before the end of the run by more than the brokers' check interval, their
initial delay and 5 s. Judged where that interval is known, no administrator changed how long
records stay, and no clock was moved. `too large`: for the same time the log was two segments
larger than retention.bytes. `kept on`: a leader reported a log start although a shorter
retention.ms, set for a while together with segment.ms, must have deleted records there. Segments
whose records have no timestamp (magic 0) expire by times that are not in the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee

_SLACK_NS = 5_000_000_000

_SEGMENTS = """
(SELECT q.p, r.broker, r.segment_base, MAX(r.timestamp_ms) AS newest_ms,
   MAX(q.retention_ns) AS retention_ns, MAX(q.late_ns) AS late_ns, MAX(q.ends_ns) AS ends_ns,
   MAX(q.calm_ns) AS calm_ns
 FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
 WHERE r.broker = q.final_leader AND q.late_ns IS NOT NULL AND q.retention_configured = 1
   AND (q.compacted = 0 OR q.deletes = 1) AND q.trimmed = 0 AND q.clock_moved = 0 AND q.gone = 0
   AND r.segment_base < q.active_base
 GROUP BY q.p, r.broker, r.segment_base)
"""
"""Closed segments of the final leader where retention by time is known."""

_SIZES = f"""
(SELECT g.p, g.broker, MIN(g.segment_base) AS base, SUM(g.size) AS size,
   MAX(CASE WHEN g.n = 1 THEN g.size ELSE 0 END) AS first_size,
   MAX(g.retention_bytes) AS retention_bytes
 FROM (SELECT b.p, b.broker, b.segment_base, SUM(b.size) AS size,
         MAX(b.retention_bytes) AS retention_bytes,
         ROW_NUMBER() OVER (PARTITION BY b.p ORDER BY b.segment_base) AS n
       FROM (SELECT q.p, r.broker, r.segment_base, r.batch_base, MAX(r.batch_bytes) AS size,
               MAX(q.retention_bytes) AS retention_bytes
             FROM replicas r JOIN vals v ON v.value_id = r.value_id
             JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
             WHERE r.broker = q.final_leader AND q.late_ns IS NOT NULL AND q.retention_bytes >= 0
               AND q.compacted = 0 AND q.trimmed = 0 AND q.gone = 0 AND v.outcome = 'ok'
               AND v.complete_ns + q.late_ns + {_SLACK_NS} < q.ends_ns
               AND q.calm_ns + q.late_ns + {_SLACK_NS} < q.ends_ns
             GROUP BY q.p, r.broker, r.segment_base, r.batch_base) b
       GROUP BY b.p, b.broker, b.segment_base) g
 GROUP BY g.p, g.broker)
"""
"""Final leaders' logs where retention by size is known: the bytes acknowledged long before the end,
and how many of them are in the oldest segment."""

_SHORTENED = f"""
FROM (SELECT m.p, m.node, m.at_ns, m.until_ns, m.off, m.short_ns, m.kind,
        MAX(m.acked) OVER (PARTITION BY m.p ORDER BY m.due_ns, m.kind
          ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS old_off
      FROM (SELECT a.p, a.node, a.invoke_ns AS at_ns, a.complete_ns AS until_ns, a.offset AS off,
              q.short_ns, a.invoke_ns - q.short_ns - q.short_segment_ns - q.late_ns - {_SLACK_NS}
                AS due_ns, CAST(NULL AS BIGINT) AS acked, 1 AS kind
            FROM answers a JOIN parts q ON q.p = a.p
            WHERE a.kind = 'earliest' AND a.error IS NULL AND q.compacted = 0
              AND q.clock_moved = 0 AND q.gone = 0
              AND a.invoke_ns > q.short_from_ns + q.short_ns + q.short_segment_ns + q.late_ns
                + {_SLACK_NS}
              AND a.complete_ns < q.short_until_ns
            UNION ALL
            SELECT t.p, NULL, NULL, NULL, NULL, NULL, t.last_ns, t.last_off, 0
            FROM ticks t JOIN parts q ON q.p = t.p AND q.short_ns IS NOT NULL) m) s
WHERE s.kind = 1
"""
"""Log starts that leaders reported while a shorter retention and segment.ms were in effect, each
with the last offset acknowledged so long before that it had to be deleted."""

_EXPIRED = f"""
FROM vals v JOIN parts q ON q.p = v.sent_p CROSS JOIN settings c
WHERE v.sent = 1 AND v.outcome = 'ok' AND q.late_ns IS NOT NULL AND q.retention_configured = 1
  AND (q.compacted = 0 OR q.deletes = 1) AND q.trimmed = 0 AND q.clock_moved = 0
  AND c.wall_ns IS NOT NULL
  AND v.timestamp_ms * 1000000 - c.wall_ns + q.retention_ns + q.late_ns + {_SLACK_NS} < q.ends_ns
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
    }
    return sentences[row["sub_kind"]]


GUARANTEE = Guarantee(
    name="kept_too_long",
    rank=20,
    about="records outlived the limits of retention",
    promise="With the delete policy old segments are discarded when their retention time or size "
    "limit has been reached.",
    source="Kafka documentation, 3.2 Topic Configs: retention.ms, retention.bytes",
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
    },
    not_counted=(
        "`too large` of compacted topics.",
        "`kept on`: the first 10 s, records not older than both settings, one check interval and "
        "5 s, unacknowledged acts, and times with a fault.",
        "Topics without a retention.ms (or retention.bytes) of their own, and brokers whose "
        "`log.retention.check.interval.ms` is unknown. Of compacted topics also those whose "
        "`log.cleaner.backoff.ms` is unknown, or where a disk was damaged.",
        "Changed settings, clock faults, and segments that expired less than that time before the "
        "end or the last healing.",
    ),
    opportunities=f"""
SELECT SUM(o.n) AS n FROM (
  SELECT COUNT(*) AS n {_EXPIRED}
  UNION ALL SELECT COUNT(*) FROM {_SIZES} s
  UNION ALL SELECT COUNT(*) {_SHORTENED}) o""",
    violations=f"""
SELECT 'too old' AS sub_kind, s.p, s.segment_base AS off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, s.broker, CAST(NULL AS BIGINT) AS start,
  (s.ends_ns - s.newest_ms * 1000000 + c.wall_ns - s.retention_ns) DIV 1000000000 AS late_s,
  CAST(NULL AS BIGINT) AS bytes, CAST(NULL AS BIGINT) AS limit_bytes,
  CAST(NULL AS BIGINT) AS limit_s
FROM {_SEGMENTS} s CROSS JOIN settings c
WHERE c.wall_ns IS NOT NULL AND s.retention_ns < s.ends_ns AND s.newest_ms >= 0
  AND s.newest_ms * 1000000 - c.wall_ns + s.retention_ns + s.late_ns + {_SLACK_NS} < s.ends_ns
  AND s.calm_ns + s.late_ns + {_SLACK_NS} < s.ends_ns
UNION ALL
SELECT 'too large', s.p, s.base, NULL, NULL, s.broker, NULL, NULL, s.size, s.retention_bytes, NULL
FROM {_SIZES} s WHERE s.size - 2 * s.first_size >= s.retention_bytes
UNION ALL
SELECT 'kept on', s.p, s.off, s.at_ns, s.until_ns, s.node, s.old_off, NULL, NULL, NULL,
  s.short_ns DIV 1000000000 {_SHORTENED} AND s.old_off >= s.off""",
    explain=_explain,
    tie="j.broker",
    compares_times=True,
    host_load_excuses=True,
    needs=("logs",),
    reads=(
        "vals",
        "ticks",
        "parts",
        "answers",
        "settings",
        "replicas",
        "parts.calm_ns",
        "parts.clock_moved",
        "parts.short_from_ns",
        "parts.trimmed",
    ),
    rests_on=("logs", "replicas", "sends", "passes", "states", "offset_answers"),
)
