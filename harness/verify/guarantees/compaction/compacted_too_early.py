"""The cleaner changes neither the active segment nor records younger than min.compaction.lag.ms.

This holds on every replica. A replica that fetched a cleaned log again may hold the records in
fewer segments. So a segment counts as active from the offset where the last segment of any replica
begins. If the final leader's log does not show its active segment, the last of several segments
that hold records counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.guarantees.compaction.keyed_sends import keys_of
from urteil.harness.verify.guarantees.compaction.keys import EXCUSE_COLUMNS, FLOORS
from urteil.harness.verify.guarantees.losses import losable
from urteil.harness.verify.limits import STOPPING_NS
from urteil.harness.verify.reference import SmallHistory, Violation

_ACTIVE = """
LEFT JOIN (SELECT partitions.p, CASE WHEN MIN(replicas.segment_base) < MAX(replicas.segment_base)
             THEN MAX(replicas.segment_base) END AS base FROM replicas
           JOIN partitions ON partitions.topic_id = replicas.topic_id
             AND partitions.partition = replicas.partition
           WHERE partitions.compacted = 1 AND partitions.in_run = 1
             GROUP BY partitions.p) active_segments
  ON active_segments.p = keyed.p
"""
_ACTIVE_BASE = (
    "CASE WHEN partitions.active_base >= 0 THEN partitions.last_base "
    "ELSE COALESCE(active_segments.base, partitions.log_end) END"
)
_REMOVED = (
    "(keyed.log_slots = 0 OR (keyed.copies < cover.copies AND keyed.off < partitions.agreed_end))"
)
_JUDGED = f"""
WHERE keyed.outcome = 'ok' AND keyed.off IS NOT NULL AND partitions.has_log = 1
  AND partitions.trimmed = 0 AND keyed.off >= partitions.log_start
  AND keyed.off < partitions.log_end
  AND (keyed.off >= {_ACTIVE_BASE} OR (partitions.min_lag_ns > 0 AND partitions.clock_moved = 0
                            AND keyed.invoke_ns + partitions.min_lag_ns > partitions.ends_ns
                            + {STOPPING_NS}))
"""
_FROM = f"FROM keyed JOIN partitions ON partitions.p = keyed.p {_ACTIVE}"


def _explain(row: Mapping[str, Any]) -> str:
    log = "final leader's log" if row["log_slots"] == 0 else "log of a replica"
    return (
        f"{row['value_id']} of key {row['key']!r} at {place(row)} is gone from the {log}, "
        f"{row['age_ms']} ms after it was sent ({row['sub_kind']})."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A record of the active segment is in all logs that cover it.

    Left out: min.compaction.lag.ms.
    """
    for key in keys_of(history):
        begins = [row.active_base or 0 for row in key.partition.logs]
        low, end = max(*begins, key.partition.start), key.partition.leader_log.log_end
        for send in key.sends:
            is_active = send.offset is not None and low <= send.offset < end
            is_missing = not send.logged_offsets or send.copies < send.covering_logs
            if send.is_acknowledged and is_active and is_missing:
                yield key.partition.violation("active segment", send.offset, send.value_id)


GUARANTEE = Guarantee(
    name="compacted_too_early",
    rank=50,
    about="compaction removed a record of the active segment, or within min.compaction.lag.ms",
    promise="The active segment is never compacted, and a message stays uncompacted at least for "
    "min.compaction.lag.ms after it was written.",
    source="Kafka documentation, 4.8 Log Compaction; KIP-58",
    sub_kinds={
        "active segment": "the record was in the active segment",
        "inside the lag": "the record was younger than min.compaction.lag.ms",
    },
    details=(
        "A record of the active segment is gone from the final leader's log, or one that was sent "
        "less than min.compaction.lag.ms before the end. With `, on some replicas` it is gone "
        "from a replica whose log goes beyond it.",
    ),
    not_counted=(
        "With clock faults, records younger than min.compaction.lag.ms.",
        "Of the active segment, records before the last active segment of any replica: a replica "
        "that fetched a cleaned log again has fewer segments.",
    ),
    occasion=Occasion.COMPACTION,
    opportunities=f"SELECT COUNT(*) AS n {_FROM} {_JUDGED}",
    violations=f"""
SELECT CASE WHEN keyed.off >= {_ACTIVE_BASE} THEN 'active segment' ELSE 'inside the lag' END
    || CASE WHEN keyed.log_slots > 0 THEN ', on some replicas' ELSE '' END AS sub_kind,
  keyed.p, keyed.off, keyed.invoke_ns AS at_ns, keyed.complete_ns AS until_ns, keyed.value_id,
  keyed.client, keyed.key, keyed.copies, keyed.log_slots,
  (partitions.ends_ns - keyed.invoke_ns) DIV 1000000 AS age_ms, {EXCUSE_COLUMNS}
{_FROM} LEFT JOIN cover ON cover.p = keyed.p AND keyed.off >= cover.lo AND keyed.off < cover.hi
{FLOORS} {_JUDGED} AND {_REMOVED}""",
    excuses=losable(),
    explain=_explain,
    compares_times=True,
    reads=(
        *("keyed", "partitions", "cover", "floors"),
        *("replicas", "partitions.clock_moved", "partitions.trimmed"),
    ),
    subjects=("partitions.compacted",),
    reference=_reference,
    reference_covers=("active segment",),
)
