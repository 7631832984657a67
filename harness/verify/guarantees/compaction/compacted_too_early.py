"""The cleaner changes neither the active segment nor records younger than min.compaction.lag.ms.

This holds on every replica. A replica that fetched its log anew from a cleaned one may hold the
records in fewer segments. A segment therefore counts as active from the offset where the last
segment of any replica begins. If the final leader's log does not show its own, the active
segment is the last of several that hold records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.guarantees.compaction.keyed_sends import keys_of
from urteil.harness.verify.guarantees.compaction.keys import FLOORS, WHOSE
from urteil.harness.verify.guarantees.losses import losable
from urteil.harness.verify.limits import STOPPING_NS
from urteil.harness.verify.reference import SmallHistory, Violation

_ACTIVE = """
LEFT JOIN (SELECT q.p, CASE WHEN MIN(r.segment_base) < MAX(r.segment_base)
             THEN MAX(r.segment_base) END AS base FROM replicas r
           JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
           WHERE q.compacted = 1 AND q.ours = 1 GROUP BY q.p) a
  ON a.p = k.p
"""
_TOLD = "CASE WHEN q.active_base >= 0 THEN q.last_base ELSE COALESCE(a.base, q.log_end) END"
_GONE = "(k.log_slots = 0 OR (k.copies < c.copies AND k.off < q.agreed_end))"
_JUDGED = f"""
WHERE k.outcome = 'ok' AND k.off IS NOT NULL AND q.has_log = 1 AND q.trimmed = 0
  AND k.off >= q.log_start AND k.off < q.log_end
  AND (k.off >= {_TOLD} OR (q.min_lag_ns > 0 AND q.clock_moved = 0
                            AND k.invoke_ns + q.min_lag_ns > q.ends_ns + {STOPPING_NS}))
"""
_FROM = f"FROM keyed k JOIN parts q ON q.p = k.p {_ACTIVE}"


def _explain(row: Mapping[str, Any]) -> str:
    whose = "final leader's log" if row["log_slots"] == 0 else "log of a replica"
    return (
        f"{row['value_id']} of key {row['key']!r} at {place(row)} is gone from the {whose}, "
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
            is_gone = not send.logged or send.copies < send.logs_over
            if send.is_acknowledged and is_active and is_gone:
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
    opportunities=f"SELECT COUNT(*) AS n {_FROM} {_JUDGED}",
    violations=f"""
SELECT CASE WHEN k.off >= {_TOLD} THEN 'active segment' ELSE 'inside the lag' END
    || CASE WHEN k.log_slots > 0 THEN ', on some replicas' ELSE '' END AS sub_kind,
  k.p, k.off, k.invoke_ns AS at_ns, k.complete_ns AS until_ns, k.value_id, k.client, k.key,
  k.copies, k.log_slots, (q.ends_ns - k.invoke_ns) DIV 1000000 AS age_ms, {WHOSE}
{_FROM} LEFT JOIN cover c ON c.p = k.p AND k.off >= c.lo AND k.off < c.hi
{FLOORS} {_JUDGED} AND {_GONE}""",
    excuses=losable(),
    explain=_explain,
    compares_times=True,
    reads=("keyed", "parts", "cover", "floors", "replicas", "parts.clock_moved", "parts.trimmed"),
    subjects=("parts.compacted",),
    reference=_reference,
    reference_covers=("active segment",),
)
