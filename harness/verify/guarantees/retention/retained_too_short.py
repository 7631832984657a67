"""Retention deletes records that are too old or exceed its size, and no others.

Judged where retention.ms is known, or is Kafka's default of a week (the lab configured the topic
without a retention, by the final leader's log), no administrator changed how long records stay,
and no clock was moved. Where an administrator deleted records, judging begins at that offset.

A record that was young at the end of the run was younger when it was deleted. Deletion by size
leaves at least retention.bytes. In a topic that is also compacted, the newest record of a
segment may be gone before the others are too old. `compacted`: a log with compaction alone
begins where it always began, whatever its retention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.limits import STOPPING_NS
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset

_JUDGED = """
FROM vals v JOIN parts q ON q.p = v.sent_p
WHERE v.sent = 1 AND v.outcome = 'ok' AND v.ack_off IS NOT NULL AND v.acks <> 0
  AND q.retention_ns IS NOT NULL AND q.compacted = 0 AND q.clock_moved = 0 AND q.gone = 0
  AND q.has_log = 1 AND (q.trimmed = 0 OR v.ack_off >= q.cut_to)
"""

_COMPACTED = """
FROM vals v JOIN parts q ON q.p = v.sent_p
WHERE v.sent = 1 AND v.outcome = 'ok' AND v.ack_off IS NOT NULL AND v.acks <> 0 AND q.ours = 1
  AND q.compacted = 1 AND q.deletes = 0 AND q.trimmed = 0 AND q.gone = 0 AND q.has_log = 1
"""

_START = "CASE WHEN q.retention_configured = 1 THEN q.max_start ELSE q.log_start END"
"""Of any replica where deletion was asked for, else the final leader's."""

_LEFT = """
LEFT JOIN (SELECT q.p, SUM(CASE WHEN r.offset = r.batch_base THEN r.batch_bytes ELSE 0 END) AS size
           FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
           WHERE q.retention_bytes >= 0 AND r.broker = q.final_leader GROUP BY q.p) b ON b.p = o.p
"""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "compacted":
        return (
            f"{place(row)} was deleted with all before it (a log starts at {row['log_start']}): "
            "the topic is compacted, and nothing of it goes by age or size."
        )
    settings = f"retention.ms is {row['retention_ms']}"
    if row["retention_bytes"] is not None and row["retention_bytes"] >= 0:
        left = f"of which {row['bytes_left'] or 0} are left"
        settings += f", retention.bytes {row['retention_bytes']}, {left}"
    return (
        f"{row['value_id']} at {place(row)} was deleted (a log starts at {row['log_start']}) at "
        f"most {row['age_ms']} ms old; {settings}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No log starts behind an acknowledged record that was younger than retention.ms at the end,
    nor one that is only compacted behind any.

    Left out: retention by size, and administrators.
    """
    state = next(row for row in history.states if row.wall_ms is not None)
    wall_ns = state.wall_ms * 1_000_000 - state.at_ns
    for partition in history.partitions:
        own = partition.settings
        highest = max(row.log_start or 0 for row in partition.logs)
        start = highest if "retention.ms" in own or partition.is_compacted else partition.start
        kept_ns = int(own.get("retention.ms", _WEEK_MS)) * 1_000_000
        for send in partition.sends:
            offset = acknowledged_offset(send)
            if offset is None or send.acks == 0 or offset >= start:
                continue
            expires_ns = send.timestamp_ms * 1_000_000 - wall_ns + kept_ns
            if partition.is_compacted:
                yield partition.violation("compacted", offset, send.value_id)
            elif expires_ns > history.ends_ns + STOPPING_NS:
                yield partition.violation("too early", offset, send.value_id)


_WEEK_MS = 7 * 86_400_000


GUARANTEE = Guarantee(
    name="retained_too_short",
    rank=10,
    about="retention deleted a record that was neither too old nor beyond the size limit",
    promise="With the delete policy a segment is discarded when its newest record is older than "
    "retention.ms, or to keep the partition within retention.bytes; with the compact policy alone "
    "neither applies.",
    source="Kafka documentation, 3.2 Topic Configs: retention.ms, retention.bytes, cleanup.policy",
    sub_kinds={
        "too early": "the record was younger than retention.ms and within retention.bytes",
        "compacted": "a log that is only compacted begins beyond what was acknowledged",
    },
    details=(
        "A log's start passed an acknowledged offset whose timestamp + retention.ms was after the "
        "run's end, and fewer than retention.bytes are left.",
    ),
    not_counted=(
        "Topics of clusters that the lab did not configure and whose retention.ms is unknown. By "
        "the final leader's log it is Kafka's week.",
        "Offsets below those of a DeleteRecords request that was not rejected, and changed "
        "settings in `admin_ops`.",
        "Clock faults.",
        "Compacted topics for their age: the newest record of a segment may be cleaned first.",
    ),
    opportunities=f"SELECT SUM(o.n) AS n FROM (SELECT COUNT(*) AS n {_JUDGED} "
    f"UNION ALL SELECT COUNT(*) AS n {_COMPACTED}) o",
    violations=f"""
SELECT 'too early' AS sub_kind, o.p, o.off, o.at_ns, o.until_ns, o.value_id, o.client,
  o.log_start, (o.ends_ns - o.stamped_ns) DIV 1000000 AS age_ms,
  o.retention_ns DIV 1000000 AS retention_ms, o.retention_bytes, b.size AS bytes_left
FROM (SELECT v.p, v.ack_off AS off, v.invoke_ns AS at_ns, v.complete_ns AS until_ns, v.value_id,
        v.client, {_START} AS log_start, q.ends_ns, q.retention_ns, q.retention_bytes,
        COALESCE(v.timestamp_ms * 1000000 - COALESCE(c.wall_ns, w.wall_ns), v.invoke_ns)
          AS stamped_ns
      FROM vals v JOIN parts q ON q.p = v.sent_p CROSS JOIN settings c
      CROSS JOIN (SELECT MAX(s.timestamp_ms * 1000000 - s.invoke_ns) AS wall_ns FROM sends s) w
      WHERE {_JUDGED.split("WHERE")[1]} AND v.ack_off < {_START}) o {_LEFT}
WHERE o.stamped_ns + o.retention_ns > o.ends_ns + {STOPPING_NS}
  AND (COALESCE(o.retention_bytes, -1) < 0 OR COALESCE(b.size, 0) < o.retention_bytes)
UNION ALL
SELECT 'compacted', q.p, v.ack_off, v.invoke_ns, v.complete_ns, v.value_id, v.client, q.max_start,
  NULL, NULL, NULL, NULL {_COMPACTED} AND v.ack_off < q.max_start""",
    explain=_explain,
    compares_times=True,
    reads=(
        *("vals", "parts", "settings", "sends", "replicas", "parts.clock_moved"),
        *("parts.cut_to", "parts.trimmed"),
    ),
    rests_on=("sends", "logs", "replicas", "states"),
    subjects=("parts.has_log",),
    reference=_reference,
)
