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
FROM records JOIN partitions ON partitions.p = records.sent_p
WHERE records.sent = 1 AND records.outcome = 'ok' AND records.ack_off IS NOT NULL
  AND records.acks <> 0 AND partitions.retention_ns IS NOT NULL AND partitions.compacted = 0
  AND partitions.clock_moved = 0 AND partitions.gone = 0 AND partitions.has_log = 1
  AND (partitions.trimmed = 0 OR records.ack_off >= partitions.cut_end)
"""

_COMPACTED = """
FROM records JOIN partitions ON partitions.p = records.sent_p
WHERE records.sent = 1 AND records.outcome = 'ok' AND records.ack_off IS NOT NULL
  AND records.acks <> 0 AND partitions.in_run = 1 AND partitions.compacted = 1
  AND partitions.deletes = 0 AND partitions.trimmed = 0 AND partitions.gone = 0
  AND partitions.has_log = 1
"""

_START = (
    "CASE WHEN partitions.retention_configured = 1 THEN partitions.max_start "
    "ELSE partitions.log_start END"
)
"""The log start of any replica if deletion was configured, else of the final leader."""

_LOG_SIZES = """
LEFT JOIN (SELECT partitions.p,
             SUM(CASE WHEN replicas.offset = replicas.batch_base THEN replicas.batch_bytes
                      ELSE 0 END) AS size
           FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
             AND partitions.partition = replicas.partition
           WHERE partitions.retention_bytes >= 0 AND replicas.broker = partitions.final_leader
             GROUP BY partitions.p) log_sizes ON log_sizes.p = deletions.p
"""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "compacted":
        return (
            f"{place(row)} was deleted with all before it (a log starts at {row['log_start']}): "
            "the topic is compacted, and nothing of it goes by age or size."
        )
    settings = f"retention.ms is {row['retention_ms']}"
    if row["retention_bytes"] is not None and row["retention_bytes"] >= 0:
        remaining = f"of which {row['bytes_left'] or 0} are left"
        settings += f", retention.bytes {row['retention_bytes']}, {remaining}"
    return (
        f"{row['value_id']} at {place(row)} was deleted (a log starts at {row['log_start']}) at "
        f"most {row['age_ms']} ms old; {settings}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No log starts behind an acknowledged record that was younger than retention.ms at the end,
    and no log with compaction alone starts behind any acknowledged record.

    Left out: retention by size, and administrators.
    """
    state = next((row for row in history.states if row.wall_ms is not None), None)
    if state is None:
        return
    wall_ns = state.wall_ms * 1_000_000 - state.at_ns
    for partition in history.partitions:
        settings = partition.settings
        highest = max(row.log_start or 0 for row in partition.logs)
        start = highest if "retention.ms" in settings or partition.is_compacted else partition.start
        kept_ns = int(settings.get("retention.ms", _WEEK_MS)) * 1_000_000
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
    opportunities=f"SELECT SUM(opportunities.n) AS n FROM (SELECT COUNT(*) AS n {_JUDGED} "
    f"UNION ALL SELECT COUNT(*) AS n {_COMPACTED}) opportunities",
    violations=f"""
SELECT 'too early' AS sub_kind, deletions.p, deletions.off, deletions.at_ns, deletions.until_ns,
  deletions.value_id, deletions.client, deletions.log_start,
  (deletions.ends_ns - deletions.stamped_ns) DIV 1000000 AS age_ms,
    deletions.retention_ns DIV 1000000 AS retention_ms, deletions.retention_bytes,
    log_sizes.size AS bytes_left
FROM (SELECT records.p, records.ack_off AS off, records.invoke_ns AS at_ns,
        records.complete_ns AS until_ns, records.value_id,
        records.client, {_START} AS log_start, partitions.ends_ns, partitions.retention_ns,
        partitions.retention_bytes,
        COALESCE(records.timestamp_ms * 1000000 - COALESCE(settings.wall_ns, wall_clock.wall_ns),
                 records.invoke_ns)
          AS stamped_ns
      FROM records JOIN partitions ON partitions.p = records.sent_p CROSS JOIN settings
      CROSS JOIN (SELECT MAX(sends.timestamp_ms * 1000000 - sends.invoke_ns) AS wall_ns
                    FROM sends) wall_clock
      WHERE {_JUDGED.split("WHERE")[1]} AND records.ack_off < {_START}) deletions {_LOG_SIZES}
WHERE deletions.stamped_ns + deletions.retention_ns > deletions.ends_ns + {STOPPING_NS}
  AND (COALESCE(deletions.retention_bytes, -1) < 0
       OR COALESCE(log_sizes.size, 0) < deletions.retention_bytes)
UNION ALL
SELECT 'compacted', partitions.p, records.ack_off, records.invoke_ns, records.complete_ns,
  records.value_id, records.client, partitions.max_start,
  NULL, NULL, NULL, NULL {_COMPACTED} AND records.ack_off < partitions.max_start""",
    explain=_explain,
    compares_times=True,
    reads=(
        *("records", "partitions", "settings", "sends", "replicas", "partitions.clock_moved"),
        *("partitions.cut_end", "partitions.trimmed"),
    ),
    rests_on=("sends", "logs", "replicas", "states"),
    subjects=("partitions.has_log",),
    reference=_reference,
)
