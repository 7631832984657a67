"""The final passes reach every acknowledged offset.

A final pass that stopped before the end that its leader reported is a reason for UNKNOWN, never
a finding. A leader whose own end lies below an acknowledged offset hides or lost that record.
The same applies to a leader that reports a log start above the offset while every replica's log
begins at or below it and no administrator deleted records. At no time does a leader report a log
start above that of all logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, numbered, place
from urteil.harness.verify.guarantees.delivery.lost_write import LOSABLE, UNCLEAN_FLOOR
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset

_JUDGED = """
FROM vals v JOIN parts q ON v.sent_p = q.p
WHERE v.sent = 1 AND v.outcome = 'ok' AND v.ack_off IS NOT NULL AND q.seen_end IS NOT NULL
  AND q.ends_known = 1
"""

BEYOND = """(v.ack_off >= q.seen_end AND v.seen_slots = 0
  AND (q.has_log = 1 OR v.complete_ns < q.ends_known_ns))"""
"""At or beyond the end that was asked for after its acknowledgement."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "told too late":
        return (
            f"Broker {row['node']} reported that {row['topic']}-{row['partition']} begins at "
            f"{row['late_begin']}, although every replica's log still begins at {row['off']}."
        )
    acknowledged = f"{row['value_id']} was acknowledged at {place(row)}"
    if row["sub_kind"] == "before the begin":
        return (
            f"{acknowledged} and lies in the final leader's log, but a final pass received "
            f"{row['late_begin']} as the partition's log start."
        )
    return f"{acknowledged}, but no final pass received an end beyond {row['seen_end']}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A record that was acknowledged before the last final pass is below the end of one of them, or
    in one.

    Left out: the begin of a log.
    """
    for partition in history.partitions:
        ends = [one.row.to_offset for one in partition.final_passes]
        for send in partition.sends if ends else ():
            offset, reads = acknowledged_offset(send), history.final_reads_of[send.value_id]
            if offset is not None and offset >= max(ends) and not reads:
                yield partition.violation("beyond the end", offset, send.value_id)


GUARANTEE = Guarantee(
    name="unseen",
    rank=20,
    about="an acknowledged record lies outside the range that final passes reported",
    promise="Consumers receive every committed message of a partition up to its end.",
    source="Kafka documentation, 4.7 Replication; KIP-207",
    sub_kinds={
        "beyond the end": (
            "the offset is at or beyond every end that final passes got, and was acknowledged "
            "before"
        ),
        "before the begin": (
            "it is below the begin that a final pass got, though the final leader's log has it"
        ),
        "told too late": "at any time, a leader returned a begin above that of all logs",
    },
    not_counted=(
        "The begin, where logs begin at several offsets or an administrator deleted records.",
        "`told too late` in compacted topics, and where a disk lost records.",
        "If a final pass stopped short, the guarantee is unknown.",
    ),
    opportunities=numbered(_JUDGED),
    violations=f"""
SELECT CASE WHEN u.ack_off < u.late_begin THEN 'before the begin'
    ELSE 'beyond the end' END AS sub_kind, u.p, u.ack_off AS off, u.invoke_ns AS at_ns,
  u.complete_ns AS until_ns, u.value_id, u.client, u.acks, u.seen_end, u.late_begin, u.unclean_on,
  u.n_reads, CASE WHEN u.ack_off < u.late_begin THEN u.log_slots ELSE 0 END AS log_slots,
  COALESCE(f.any_floor, 0) AS any_floor,
  {UNCLEAN_FLOOR.format("u")} AS unclean_floor, f.lost_floor, CAST(NULL AS INT) AS node
FROM (SELECT v.*, q.seen_end, q.late_begin, q.unclean_on, q.unclean_floor AS least_floor,
        q.spoilt_ns {_JUDGED.replace("vals v", "irregular_values v")}
        AND ({BEYOND}
          OR (v.ack_off < q.late_begin AND v.log_slots > 0))) u
LEFT JOIN floors f ON f.p = u.p AND u.invoke_ns >= f.from_ns AND u.invoke_ns < f.to_ns
UNION ALL
SELECT 'told too late', a.p, q.one_start, MIN(a.invoke_ns), MIN(a.complete_ns), NULL, NULL, NULL,
  NULL, a.offset, 0, 0, 1, 0, 0, NULL, a.node
FROM answers a JOIN parts q ON q.p = a.p
WHERE a.kind = 'earliest' AND a.error IS NULL AND a.offset > q.one_start AND q.compacted = 0
  AND q.log_end > q.one_start AND q.ours = 1 AND a.offset <> COALESCE(q.late_begin, -1)
GROUP BY a.p, q.one_start, a.offset, a.node""",
    excuses=LOSABLE,
    explain=_explain,
    tie="j.value_id, j.late_begin, j.node",
    excused_by_times=True,
    needs=("sends", "passes"),
    reads=(
        "irregular_values",
        "kinds",
        "parts",
        "answers",
        "floors",
        "parts.late_begin",
        "parts.spoilt_ns",
    ),
    rests_on=("sends", "passes", "logs", "states", "admin_ops"),
    subjects=("parts.ends_known", "answers"),
    needs_whole_passes=True,
    reference=_reference,
    reference_covers=("beyond the end",),
)
