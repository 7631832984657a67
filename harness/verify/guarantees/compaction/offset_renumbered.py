"""Compaction never moves a record: its offset is its identity, and the order remains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, numbered, place
from urteil.harness.verify.guarantees.losses import (
    RETRIED,
    REUSED_OFFSET,
    destroyed,
    unclean_election,
)
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset, places_of

_JUDGED = """
FROM vals v JOIN parts q ON q.p = v.sent_p
WHERE v.sent = 1 AND q.compacted = 1 AND q.ours = 1 AND v.shown_slot IS NOT NULL
"""
_ACKED = "v.outcome = 'ok' AND v.acks <> 0 AND v.ack_off IS NOT NULL"


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "reordered":
        return f"At {place(row)} stands a record below the base {row['found_off']} of its batch."
    return (
        f"{row['value_id']} belongs at {place(row)}, but after compaction it is at offset "
        f"{row['found_off']}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A record of a compacted topic is at one offset, where it was acknowledged, and not below the
    base of its batch."""
    for partition in (one for one in history.partitions if one.is_compacted):
        for send in partition.sends:
            value = send.value_id
            places = places_of(history.reads_of[value] + history.copies_of[value])
            acknowledged = None if send.acks == 0 else acknowledged_offset(send)
            first = places[0][2] if places else None
            if len(places) > 1 or (places and acknowledged not in (None, first)):
                offset = acknowledged_offset(send)
                yield partition.violation("renumbered", first if offset is None else offset, value)
        for row in partition.replicas:
            if row.batch_base is not None and row.offset < row.batch_base:
                yield partition.violation("reordered", row.offset, row.value_id)


GUARANTEE = Guarantee(
    name="offset_renumbered",
    rank=60,
    about="a record of a compacted topic has another offset than it was assigned",
    promise="The offset for a message never changes, and the ordering of messages is always "
    "maintained: compaction removes some, but never re-orders them.",
    source="Kafka documentation, 4.8 Log Compaction: guarantees",
    sub_kinds={
        "renumbered": "the record lies at another offset, or at two",
        "reordered": "the record lies below the base offset of its batch",
    },
    details=(
        "A record of a compacted topic is at another offset than acknowledged, or at two; or a "
        "record stands below its batch's base.",
    ),
    not_counted=("Repeated sends without idempotence.",),
    opportunities=numbered(_JUDGED),
    violations=f"""
SELECT 'renumbered' AS sub_kind, v.p, COALESCE(v.ack_off, v.shown_slot % {SLOT}) AS off,
  v.invoke_ns AS at_ns, v.complete_ns AS until_ns, v.value_id, v.client, v.acks,
  CASE WHEN v.shown_slot % {SLOT} = v.ack_off THEN v.shown_last % {SLOT}
    ELSE v.shown_slot % {SLOT} END AS found_off,
  q.unclean_on, COALESCE(f.unclean_floor, 0) AS unclean_floor,
  COALESCE(f.any_floor, 0) AS any_floor, v.idempotent, f.lost_floor
FROM irregular_values v JOIN parts q ON q.p = v.sent_p
LEFT JOIN floors f ON f.p = v.sent_p AND v.invoke_ns >= f.from_ns AND v.invoke_ns < f.to_ns
WHERE v.sent = 1 AND q.compacted = 1 AND q.ours = 1 AND v.shown_slot IS NOT NULL
  AND (v.shown_slot <> v.shown_last OR ({_ACKED} AND v.shown_slot % {SLOT} <> v.ack_off))
UNION ALL
SELECT 'reordered', q.p, r.offset, NULL, NULL, r.value_id, NULL, -1, MAX(r.batch_base),
  q.unclean_on, q.unclean_floor, 0, 1, NULL
FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
WHERE q.compacted = 1 AND q.ours = 1 AND r.offset < r.batch_base
GROUP BY q.p, r.offset, r.value_id, q.unclean_on, q.unclean_floor""",
    excuses=(RETRIED, REUSED_OFFSET, unclean_election(), destroyed()),
    explain=_explain,
    excused_by_times=True,
    reads=("irregular_values", "kinds", "parts", "floors", "replicas"),
    subjects=("parts.compacted",),
    reference=_reference,
)
