"""Records that retention or an administrator deleted are gone, for readers and from every disk.

`too old`: the newest timestamp of a closed segment of the final leader plus retention.ms, and
the last healing, lie before the end of the run by more than the brokers' check interval, their
initial delay and 5 s. Judged where that interval is known, no administrator changed how long
records stay, and no clock was moved. `too large`: for the same time the log was two segments
larger than retention.bytes.

`on a replica`, `told`: DeleteRecords was acknowledged up to an offset, yet at the end an in-sync
replica begins before it, or a final pass received an earlier log start. Left out where all
replicas were stopped since, because log starts are checkpointed once a minute. After a response
that got lost, an in-sync replica still has to begin where its leader does. `fetched`: within one
leader epoch a leader reported a log start and then served a fetch from before it.

`kept on`: a leader reported a log start although a shorter retention.ms, set for a while
together with segment.ms, must have deleted records there. `not rolled`: a segment that retention
could never delete, because it is larger than segment.bytes or spans more than segment.ms and ten
seconds. Segments whose records have no timestamp (magic 0) expire and roll by times that are not
in the evidence. `on disk`: a broker holds a log of a deleted topic or of a partition that was
moved away, or a directory marked for deletion for longer than `file.delete.delay.ms`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place

_SLACK_NS = 5_000_000_000
_APART_MS = 10_000
"""Records that were sent again have older times than those before them."""

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

_LONG = """
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

_EXPIRED = f"""
FROM vals v JOIN parts q ON q.p = v.sent_p CROSS JOIN settings c
WHERE v.sent = 1 AND v.outcome = 'ok' AND q.late_ns IS NOT NULL AND q.retention_configured = 1
  AND (q.compacted = 0 OR q.deletes = 1) AND q.trimmed = 0 AND q.clock_moved = 0
  AND c.wall_ns IS NOT NULL
  AND v.timestamp_ms * 1000000 - c.wall_ns + q.retention_ns + q.late_ns + {_SLACK_NS} < q.ends_ns
"""

_BEFORE = "FROM answers a WHERE a.kind = 'before'"


def _explain(row: Mapping[str, Any]) -> str:
    where, broker = f"{row['topic']}-{row['partition']}", row["broker"]
    sentences = {
        "too old": f"The segment of {where} that begins at {row['off']} is still on broker "
        f"{broker}, {row['late_s']} s after its last record was older than retention.ms.",
        "too large": f"The log of {where} on broker {broker} had {row['bytes']} bytes long before "
        f"the end, two segments more than retention.bytes, {row['limit_bytes']}.",
        "on a replica": f"The records of {where} below {row['start']} were deleted, yet the log of "
        f"broker {broker}, which is in sync, begins at {row['off']}.",
        "told": f"The records of {where} below {row['start']} were deleted, yet a later reader "
        f"received {row['off']} as its log start.",
        "fetched": f"Broker {broker} reported that {where} begins at {row['start']}, and then "
        f"served a fetch from {place(row)}.",
    }
    if row["sub_kind"] == "not rolled":
        limits = ((row["limit_bytes"], "bytes"), (row["limit_s"], "s"))
        ends = " or ".join(f"{most} {unit}" for most, unit in limits if most is not None)
        return (
            f"The segment of {where} that begins at {row['off']} on broker {broker} has "
            f"{row['bytes']} bytes and records {row['late_s']} s apart: it had to roll at {ends}."
        )
    if row["sub_kind"] == "kept on":
        return (
            f"Broker {broker} reported that {where} begins at {row['off']}, although retention.ms "
            f"was {row['limit_s']} s for a while, and all records up to offset {row['start']} were "
            "older."
        )
    return _LEFT[row["what"]].format(**row) if row["what"] else sentences[row["sub_kind"]]


_LEFT = {
    "deleted": "Broker {broker} has a log of {topic}-{partition}, a topic that was deleted "
    "{late_s} s before.",
    "moved": "Broker {broker} still has the log of {name}, {late_s} s after it left the "
    "replicas and no fault acted.",
    "set aside": "Broker {broker} marked {name} for deletion {late_s} s before the broker ended "
    "and still had it then; {limit_s} s are enough.",
}


GUARANTEE = Guarantee(
    name="kept_too_long",
    rank=20,
    about="records that retention or an administrator deleted still exist",
    promise="With the delete policy old segments are discarded when their retention time or size "
    "limit has been reached; segment.ms and segment.bytes bound a segment; a replica that is moved "
    "away or whose topic is deleted leaves its broker's disk; records before the low watermark "
    "that DeleteRecords answers are gone, and a fetch below a partition's first offset is out of "
    "range.",
    source="Kafka documentation, 3.2 Topic Configs: retention.ms; KIP-107",
    sub_kinds={
        "too old": (
            "a closed segment of the final leader outlived its retention.ms, one check interval "
            "of the brokers and 5 s"
        ),
        "too large": (
            "its log was two segments larger than retention.bytes for so long before the end"
        ),
        "on a replica": "records that DeleteRecords deleted are in the end on a replica in sync",
        "told": "a final pass got a begin below them",
        "fetched": (
            "a leader that had returned the partition's begin did not reject a fetch from before "
            "it, in the same epoch"
        ),
        "kept on": (
            "a leader returned a begin although a shorter retention.ms, set for a while with "
            "segment.ms, had to delete it"
        ),
        "not rolled": (
            "a segment of the final leader is larger than segment.bytes, or its records are "
            "further apart than segment.ms and 10 s"
        ),
        "on disk": (
            "a broker has a log of a deleted topic, or 15 s later of a partition that was moved "
            "away, or kept a renamed file 15 s longer than file.delete.delay.ms before it stopped"
        ),
    },
    not_counted=(
        "`too large` of compacted topics, and `not rolled` of their closed segments.",
        "`kept on`: the first 10 s, records not older than both settings, one check interval and "
        "5 s, unacknowledged acts, and times with a fault.",
        "`on disk` where disks or clocks failed, or a broker or controller came or went since.",
        "Topics without a retention.ms (or retention.bytes) of their own, and brokers whose "
        "`log.retention.check.interval.ms` is unknown. Of compacted topics also those whose "
        "`log.cleaner.backoff.ms` is unknown, or where a disk was damaged.",
        "Changed settings, clock faults, and segments that expired less than that time before the "
        "end or the last healing.",
        "Deleted records where all replicas ended without a clean stop since: the start of a log "
        "is written to disk once a minute and at a clean stop.",
    ),
    opportunities=f"""
SELECT SUM(o.n) AS n FROM (
  SELECT COUNT(*) AS n {_EXPIRED}
  UNION ALL SELECT COUNT(*) FROM parts q WHERE q.deleted_to IS NOT NULL AND q.has_log = 1
  UNION ALL SELECT COUNT(*) FROM {_SIZES} s
  UNION ALL SELECT COUNT(*) {_BEFORE}
  UNION ALL SELECT COUNT(*) {_SHORTENED}
  UNION ALL SELECT COUNT(*) {_LONG}
  UNION ALL SELECT COUNT(*) FROM leftovers l) o""",
    violations=f"""
SELECT 'too old' AS sub_kind, s.p, s.segment_base AS off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, s.broker, CAST(NULL AS BIGINT) AS start,
  (s.ends_ns - s.newest_ms * 1000000 + c.wall_ns - s.retention_ns) DIV 1000000000 AS late_s,
  CAST(NULL AS BIGINT) AS bytes, CAST(NULL AS BIGINT) AS limit_bytes,
  CAST(NULL AS STRING) AS what, CAST(NULL AS STRING) AS name, CAST(NULL AS BIGINT) AS limit_s
FROM {_SEGMENTS} s CROSS JOIN settings c
WHERE c.wall_ns IS NOT NULL AND s.retention_ns < s.ends_ns AND s.newest_ms >= 0
  AND s.newest_ms * 1000000 - c.wall_ns + s.retention_ns + s.late_ns + {_SLACK_NS} < s.ends_ns
  AND s.calm_ns + s.late_ns + {_SLACK_NS} < s.ends_ns
UNION ALL
SELECT 'too large', s.p, s.base, NULL, NULL, s.broker, NULL, NULL, s.size, s.retention_bytes,
  NULL, NULL, NULL
FROM {_SIZES} s WHERE s.size - 2 * s.first_size >= s.retention_bytes
UNION ALL
SELECT 'on a replica', l.p, l.log_start, q.deleted_ns, NULL, l.broker,
  COALESCE(q.deleted_to, q.cut_to), NULL, NULL, NULL, NULL, NULL, NULL
FROM logs_p l JOIN parts q ON q.p = l.p
WHERE l.in_isr = 1 AND q.gone = 0 AND (l.log_start < q.deleted_to
  OR (l.log_start < q.cut_to AND q.log_start >= q.cut_to AND q.has_log = 1))
UNION ALL
SELECT 'told', q.p, w.from_offset, w.begin_ns, MAX(w.end_ns), w.leader, MAX(q.deleted_to),
  NULL, NULL, NULL, NULL, NULL, NULL
FROM passes w JOIN parts q ON q.topic_id = w.topic_id AND q.partition = w.partition
WHERE w.final AND q.gone = 0 AND w.begin_ns > q.deleted_ns AND w.from_offset < q.deleted_to
GROUP BY q.p, w.from_offset, w.begin_ns, w.leader
UNION ALL
SELECT 'fetched', a.p, a.offset, a.invoke_ns, a.complete_ns, a.node, a.offset + 1,
  NULL, NULL, NULL, NULL, NULL, NULL
{_BEFORE} AND a.error IS NULL
UNION ALL
SELECT 'kept on', s.p, s.off, s.at_ns, s.until_ns, s.node, s.old_off, NULL, NULL, NULL, NULL, NULL,
  s.short_ns DIV 1000000000 {_SHORTENED} AND s.old_off >= s.off
UNION ALL
SELECT 'not rolled', s.p, s.segment_base, NULL, NULL, s.broker, NULL,
  (s.newest_ms - s.first_ms) DIV 1000, s.size, s.segment_bytes, NULL, NULL,
  s.segment_ms DIV 1000 {_LONG}
WHERE (s.first_ms >= 0 AND s.newest_ms - s.first_ms > s.segment_ms + {_APART_MS})
  OR (s.compacted = 0 AND s.size > s.segment_bytes)
UNION ALL
SELECT 'on disk', l.p, NULL, NULL, NULL, l.broker, NULL, CAST(l.age_s AS BIGINT), NULL, NULL,
  l.what, l.name, CAST(l.limit_s AS BIGINT)
FROM leftovers l WHERE l.late = 1""",
    explain=_explain,
    tie="j.broker, j.name",
    compares_times=True,
    host_load_excuses=True,
    despite_host_load=frozenset({"fetched", "on a replica", "told"}),
    needs=("logs",),
    reads=(
        *("vals", "ticks", "parts", "answers", "logs_p", "settings", "leftovers", "passes"),
        *("replicas", "parts.calm_ns", "parts.clock_moved", "parts.cut_to"),
        *("parts.deleted_to", "parts.short_from_ns", "parts.trimmed"),
    ),
    rests_on=("logs", "replicas", "sends", "passes", "states", "offset_answers"),
)
