"""Real-time order: a record that was acknowledged before another send began has the lower offset.

With acks=all in one partition, over all clients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from urteil.harness.verify.guarantees.base import Guarantee, count_records, place
from urteil.harness.verify.guarantees.losses import LOSSES_SHOWN
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset

_SENDS = (
    "FROM records WHERE records.outcome = 'ok' AND records.acks = -1 "
    "AND records.ack_off IS NOT NULL "
    "AND records.sent_p IS NOT NULL AND records.complete_ns IS NOT NULL"
)


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No record has an offset below one that was acknowledged before its send began.

    From the highest offset down, `above_ns` is the first acknowledgement above.
    """
    for partition in history.partitions:
        acked = [
            (offset, send.invoke_ns, send.complete_ns, send.value_id)
            for send in partition.sends
            if send.acks == -1 and (offset := acknowledged_offset(send)) is not None
        ]
        above_ns = math.inf
        for offset, sends in groupby(sorted(acked, reverse=True), key=itemgetter(0)):
            records = list(sends)
            for _, invoke_ns, _, value in records:
                if above_ns < invoke_ns:
                    yield partition.violation("real-time order", offset, value)
            above_ns = min(above_ns, *(done_ns for _, _, done_ns, _ in records))


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
    unused_evidence=(
        "Reads in place of acknowledgements: what was read before a send lies before it, too.",
    ),
    opportunities=count_records(_SENDS),
    violations=f"""
SELECT 'real-time order' AS sub_kind, appends.p, appends.off, appends.at_ns, appends.until_ns,
  appends.value_id, appends.done_off, partitions.unclean_on, partitions.unclean_floor,
  partitions.lost_floor, partitions.losses_ns,
  CASE WHEN appends.lately_off > appends.off THEN appends.at_ns END AS known_ns
FROM (SELECT events.*, MAX(events.acked_off) OVER w AS done_off,
        MAX(CASE WHEN events.t >= partitions.losses_ns
                 THEN events.acked_off END) OVER w AS lately_off
      FROM (SELECT records.sent_p AS p, records.invoke_ns AS t, 0 AS kind,
              CAST(NULL AS BIGINT) AS acked_off,
              records.ack_off AS off, records.value_id, records.invoke_ns AS at_ns,
              records.complete_ns AS until_ns {_SENDS}
            UNION ALL
            SELECT records.sent_p, records.complete_ns, 1, records.ack_off, NULL, NULL, NULL,
              NULL {_SENDS}) events
      JOIN partitions ON partitions.p = events.p
      WINDOW w AS (PARTITION BY events.p ORDER BY events.t, events.kind
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) appends
JOIN partitions ON partitions.p = appends.p
WHERE appends.kind = 0 AND appends.done_off > appends.off""",
    excuses=LOSSES_SHOWN,
    explain=lambda row: (
        f"{row['value_id']} was sent after offset {row['done_off']} had been acknowledged, but was "
        f"acknowledged at {place(row)}."
    ),
    compares_times=True,
    reads=("records", "record_counts", "partitions"),
    rests_on=("sends",),
    reference=_reference,
)
