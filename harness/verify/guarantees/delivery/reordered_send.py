"""The records of one producer are in the log in the order in which it sent them.

Judged within one producer id and epoch, by the first copies in the log. Failed sends are left out,
and so are sends of unknown outcome, except those of a transaction that readers prove committed."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.permitted_deviations import Permit
from urteil.harness.verify.guarantees.base import EPOCH, SLOT, Excuse, Guarantee, count_records
from urteil.harness.verify.limits import OF_COMMIT
from urteil.harness.verify.reference import Row, SmallHistory, Violation, acknowledged_offset

_ACKED = f"partitions.p * {SLOT} + records.ack_off"
_SLOT = f"""COALESCE(CASE WHEN partitions.compacted = 1 OR records.ack_off < partitions.log_start
  THEN LEAST(records.first_slot, {_ACKED}) END, records.first_slot, {_ACKED})"""
"""The first copy may be cleaned or deleted, while a later one is still in the log."""
_JUDGED = """
FROM records JOIN partitions ON partitions.p = records.sent_p WHERE records.sent = 1
  AND records.outcome = 'ok'
  AND (records.log_slots > 0 OR (partitions.reads_are_log = 1 AND records.asked = 0
                                 AND records.ack_off IS NOT NULL))
"""
"""Without logs, the offsets of records that no consumer read are those of acknowledgements."""
_IN_ORDER = f"""
FROM records JOIN partitions ON partitions.p = records.sent_p {OF_COMMIT}
WHERE records.sent = 1 AND (records.outcome = 'ok' OR records.outcome = 'info'
                            AND known_commits.txn IS NOT NULL)
  AND COALESCE(records.first_slot DIV {SLOT}, records.sent_p) = records.sent_p
  AND (records.log_slots > 0 OR (partitions.reads_are_log = 1 AND records.asked = 0
                                 AND records.ack_off IS NOT NULL))
"""
"""These, and records of unknown outcome in transactions that were certainly committed. A record
whose first copy is in another partition than it was sent to is left out (`phantom`)."""
_ORDERED = f"""
SELECT records.p, records.client, records.session, records.op, records.value_id,
  {_SLOT} AS first_slot, records.invoke_ns, records.complete_ns, records.idempotent, records.acks,
  records.pid, LAG({_SLOT}) OVER w AS prev_slot, LAG(records.value_id) OVER w AS prev_value
{_IN_ORDER}
WINDOW w AS (PARTITION BY records.p, records.client, records.session, COALESCE(records.pid, -1),
  COALESCE(records.pseq, -1) DIV {EPOCH} ORDER BY records.op)
"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Of two acknowledged records of one producer id and epoch, the first copy of the earlier one
    has the lower offset.

    Left out: records whose first copy is in another partition than they were sent to.
    """
    for partition in history.partitions:
        last: dict[tuple[object, ...], int] = {}
        for send in sorted(partition.sends, key=lambda send: int(send.op)):
            records = history.records_of[send.value_id]
            if send.outcome != "ok" or not records or records[0].partition != partition.partition:
                continue
            offset, acked = records[0].offset, acknowledged_offset(send)
            if acked is not None and (partition.is_compacted or acked < partition.start):
                offset = min(offset, acked)
            producer = (send.client, send.session, *max(map(_identity, records)))
            if offset < last.get(producer, -1):
                yield partition.violation("inverted", offset, send.value_id)
            last[producer] = offset


def _identity(record: Row) -> tuple[int, int]:
    """Producer id and epoch of a record, as far as it has them."""
    has_sequence = record.sequence is not None and record.sequence >= 0
    return (
        -1 if record.producer_id is None else int(record.producer_id),
        int(record.producer_epoch) if has_sequence else 0,
    )


GUARANTEE = Guarantee(
    name="reordered_send",
    rank=120,
    about="two records of one producer lie in the log in the wrong order",
    promise="Messages sent by a producer to a particular topic partition will be appended in the "
    "order they are sent.",
    source="Kafka documentation, 1.1 Introduction: guarantees; KIP-98, KAFKA-5494",
    sub_kinds={
        "inverted": "the record that was sent later lies first",
    },
    details=("Judged are the first copies of acknowledged records of one producer id and epoch.",),
    not_counted=(
        "Records of different epochs.",
        "Records whose first copy is in another partition than they were sent to.",
        "Unknown sends. Without logs, those of a transaction of which a reader of committed "
        "records got a record count.",
        "Late copies of records that were cleaned or deleted where they were acknowledged.",
    ),
    unused_evidence=(
        "Acknowledged offsets of records that the final log has no more: without the log, "
        "the epoch of their producer is unknown.",
    ),
    opportunities=count_records(_JUDGED),
    violations=f"""
SELECT 'inverted' AS sub_kind, ordered_sends.p, ordered_sends.first_slot % {SLOT} AS off,
  ordered_sends.invoke_ns AS at_ns, ordered_sends.complete_ns AS until_ns, ordered_sends.value_id,
  ordered_sends.prev_value, ordered_sends.prev_slot % {SLOT} AS prev_off, ordered_sends.client,
  ordered_sends.session, ordered_sends.pid, ordered_sends.idempotent, ordered_sends.acks,
  settings.in_flight
FROM ({_ORDERED}) ordered_sends CROSS JOIN settings
  WHERE ordered_sends.first_slot < ordered_sends.prev_slot""",
    excuses=(
        Excuse(
            when="violation.idempotent = 0 AND violation.in_flight > 1",
            reason="several in flight without idempotence",
            permits=(Permit.IN_FLIGHT,),
        ),
        Excuse(
            when="violation.acks = 0",
            reason="acks=0: the producer does not wait for the record before",
            permits=(Permit.ACKS_ZERO,),
        ),
    ),
    explain=lambda row: (
        f"{row['client']} sent {row['prev_value']} first and {row['value_id']} after it, but they "
        f"lie at offsets {row['prev_off']} and {row['off']} of {row['topic']}-{row['partition']}."
    ),
    reads=("records", "known_commits", "record_counts", "partitions", "settings"),
    rests_on=("sends", "replicas"),
    reference=_reference,
)
