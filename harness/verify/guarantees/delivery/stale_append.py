"""Real-time order: a record acknowledged before another send began lies before it.

With acks=all in one partition, over all clients."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.guarantees.base import Guarantee, numbered, place
from urteil.harness.verify.guarantees.losses import LOSSES_SHOWN
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset

_SENDS = (
    "FROM vals v WHERE v.outcome = 'ok' AND v.acks = -1 AND v.ack_off IS NOT NULL "
    "AND v.sent_p IS NOT NULL AND v.complete_ns IS NOT NULL"
)


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No record lies below the offset of one that was acknowledged before its send began."""
    for partition in history.partitions:
        acked = [
            (send.invoke_ns, send.complete_ns, offset, send.value_id)
            for send in partition.sends
            if send.acks == -1 and (offset := acknowledged_offset(send)) is not None
        ]
        for invoke_ns, _, offset, value in acked:
            if any(done_ns < invoke_ns and at > offset for _, done_ns, at, _ in acked):
                yield partition.violation("real-time order", offset, value)


GUARANTEE = Guarantee(
    name="stale_append",
    rank=140,
    about="a record lies before one that was acknowledged before it was sent",
    promise="The leader appends records in the order in which they arrive, and a record is "
    "acknowledged only after it was appended and committed.",
    source="Kafka documentation, 4.6 Message Delivery Semantics, 4.7 Replication",
    sub_kinds={
        "real-time order": "it was sent after a higher offset had been acknowledged",
    },
    details=(
        "Judged are acks=all records of all clients: one that was sent after another was "
        "acknowledged must stand behind it.",
    ),
    opportunities=numbered(_SENDS),
    violations=f"""
SELECT 'real-time order' AS sub_kind, t.p, t.off, t.at_ns, t.until_ns, t.value_id, t.done_off,
  q.unclean_on, q.unclean_floor, q.lost_floor, q.spoilt_ns,
  CASE WHEN t.lately_off > t.off THEN t.at_ns END AS known_ns
FROM (SELECT m.*, MAX(m.acked_off) OVER w AS done_off,
        MAX(CASE WHEN m.t >= z.spoilt_ns THEN m.acked_off END) OVER w AS lately_off
      FROM (SELECT v.sent_p AS p, v.invoke_ns AS t, 0 AS kind, CAST(NULL AS BIGINT) AS acked_off,
              v.ack_off AS off, v.value_id, v.invoke_ns AS at_ns, v.complete_ns AS until_ns {_SENDS}
            UNION ALL
            SELECT v.sent_p, v.complete_ns, 1, v.ack_off, NULL, NULL, NULL, NULL {_SENDS}) m
      JOIN parts z ON z.p = m.p
      WINDOW w AS (PARTITION BY m.p ORDER BY m.t, m.kind
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) t
JOIN parts q ON q.p = t.p
WHERE t.kind = 0 AND t.done_off > t.off""",
    excuses=LOSSES_SHOWN,
    explain=lambda row: (
        f"{row['value_id']} was sent after offset {row['done_off']} had been acknowledged, but was "
        f"acknowledged at {place(row)}."
    ),
    compares_times=True,
    reads=("vals", "kinds", "parts"),
    rests_on=("sends",),
    reference=_reference,
)
