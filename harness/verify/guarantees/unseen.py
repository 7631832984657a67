"""The final passes reach every acknowledged offset.

A final pass that stopped before the end its leader told is a reason for UNKNOWN, never a finding;
but a leader whose own end lies below an acknowledged offset hides or lost that record. So does one
that tells a begin above it, where every replica's log begins at or below it and nobody deleted
records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, numbered, place
from urteil.harness.verify.guarantees.lost_write import PERMITTED

_JUDGED = """
FROM vals v JOIN parts q ON v.sent_p = q.p
WHERE v.sent = 1 AND v.outcome = 'ok' AND v.ack_off IS NOT NULL AND q.seen_end IS NOT NULL
  AND q.ends_told = 1
"""


def _explain(row: Mapping[str, Any]) -> str:
    told = f"{row['value_id']} was acknowledged at {place(row)}"
    if row["sub_kind"] == "before the begin":
        return (
            f"{told} and lies in the final leader's log, but a final pass was told that the "
            f"partition begins at {row['late_begin']}."
        )
    return f"{told}, but every final pass was told that the partition ends at {row['seen_end']}."


GUARANTEE = Guarantee(
    name="unseen",
    about="an acknowledged record lies outside of what final passes were told is there",
    promise="Consumers are given every committed message of a partition up to its end.",
    source="Kafka documentation, 4.7 Replication; KIP-207",
    opportunities=numbered(_JUDGED),
    violations=f"""
SELECT CASE WHEN u.ack_off < u.late_begin THEN 'before the begin'
    ELSE 'beyond the end' END AS sub_kind, u.p, u.ack_off AS off, u.invoke_ns AS at_ns,
  u.complete_ns AS until_ns, u.value_id, u.client, u.acks, u.seen_end, u.late_begin, u.unclean_on,
  u.n_reads, CASE WHEN u.ack_off < u.late_begin THEN u.log_slots ELSE 0 END AS log_slots,
  COALESCE(f.any_floor, 0) AS any_floor,
  COALESCE(f.unclean_floor, 0) AS unclean_floor, f.lost_floor
FROM (SELECT v.*, q.seen_end, q.late_begin, q.unclean_on {_JUDGED.replace("vals v", "odd v")}
        AND ((v.ack_off >= q.seen_end AND v.seen_slots = 0)
          OR (v.ack_off < q.late_begin AND v.log_slots > 0))) u
LEFT JOIN floors f ON f.p = u.p AND u.invoke_ns >= f.from_ns AND u.invoke_ns < f.to_ns""",
    permitted=PERMITTED,
    explain=_explain,
    needs=("sends", "passes"),
    rests_on=("sends", "passes", "logs", "states"),
    sub_kinds=("beyond the end", "before the begin"),
    needs_whole_passes=True,
)
