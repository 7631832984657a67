"""Compaction never moves a record: its offset is its identity, and the order remains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, Occasion, count_records, place
from urteil.harness.verify.guarantees.losses import (
    RETRIED,
    REUSED_OFFSET,
    lost_disks,
    unclean_election,
)
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset, places_of

_JUDGED = """
FROM records JOIN partitions ON partitions.p = records.sent_p
WHERE records.sent = 1 AND partitions.compacted = 1 AND partitions.in_run = 1
  AND records.shown_slot IS NOT NULL
"""
_ACKED = "records.outcome = 'ok' AND records.acks <> 0 AND records.ack_off IS NOT NULL"


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
    for partition in (partition for partition in history.partitions if partition.is_compacted):
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
    occasion=Occasion.COMPACTION,
    opportunities=count_records(_JUDGED),
    violations=f"""
SELECT 'renumbered' AS sub_kind, records.p,
  COALESCE(records.ack_off, records.shown_slot % {SLOT}) AS off, records.invoke_ns AS at_ns,
  records.complete_ns AS until_ns, records.value_id, records.client, records.acks,
  CASE WHEN records.shown_slot % {SLOT} = records.ack_off THEN records.shown_last % {SLOT}
    ELSE records.shown_slot % {SLOT} END AS found_off,
  partitions.unclean_on, COALESCE(floors.unclean_floor, 0) AS unclean_floor,
  COALESCE(floors.any_floor, 0) AS any_floor, records.idempotent, floors.lost_floor
FROM irregular_values records JOIN partitions ON partitions.p = records.sent_p
LEFT JOIN floors ON floors.p = records.sent_p AND records.invoke_ns >= floors.from_ns
  AND records.invoke_ns < floors.to_ns
WHERE records.sent = 1 AND partitions.compacted = 1 AND partitions.in_run = 1
  AND records.shown_slot IS NOT NULL AND (records.shown_slot <> records.shown_last
      OR ({_ACKED} AND records.shown_slot % {SLOT} <> records.ack_off))
UNION ALL
SELECT 'reordered', partitions.p, replicas.offset, NULL, NULL, replicas.value_id, NULL, -1,
  MAX(replicas.batch_base), partitions.unclean_on, partitions.unclean_floor, 0, 1, NULL
FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
  AND partitions.partition = replicas.partition
WHERE partitions.compacted = 1 AND partitions.in_run = 1 AND replicas.offset < replicas.batch_base
GROUP BY partitions.p, replicas.offset, replicas.value_id, partitions.unclean_on,
  partitions.unclean_floor""",
    excuses=(RETRIED, REUSED_OFFSET, unclean_election(), lost_disks()),
    explain=_explain,
    excused_by_times=True,
    reads=("irregular_values", "record_counts", "partitions", "floors", "replicas"),
    subjects=("partitions.compacted",),
    reference=_reference,
)
