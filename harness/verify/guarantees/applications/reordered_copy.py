"""An application that processes records in order keeps the order of each key.

Records of one key and partition reach the application in the order of their offsets. Their copies,
by one idempotent producer into one partition, then have the same order. An application that
processes again what it did not commit repeats copies behind later ones, so the first copy of each
record counts."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import RECORDS, SLOT, Excuse, Guarantee, place

_COPIED = f"""
SELECT records.value_id, records.client, records.sent_p AS p, records.sent_key, records.first_slot,
  records.invoke_ns, records.complete_ns, copies.first_slot AS copy_slot
FROM records JOIN partitions ON partitions.p = records.sent_p JOIN records copies
  ON copies.value_id = 'copy/' || records.value_id
WHERE records.sent = 1 AND records.n_slots = 1 AND records.log_slots = 1
  AND records.sent_key IS NOT NULL AND partitions.ours = 1 AND partitions.copies = 0
  AND copies.first_slot IS NOT NULL AND (SELECT MAX(ordered) FROM settings) = 1
UNION ALL
SELECT records.value_id, records.client, records.sent_p, records.sent_key, records.first_slot,
  records.invoke_ns, records.complete_ns, MIN(copies.first_slot)
FROM records copies JOIN records ON records.value_id = copies.source
JOIN txn_p transactions ON transactions.client = copies.client
  AND transactions.session = copies.session AND transactions.txn = copies.txn
WHERE transactions.fate = 'committed' AND transactions.late = 0 AND copies.log_slots = 1
  AND records.sent = 1 AND records.n_slots = 1 AND records.log_slots = 1
  AND records.sent_key IS NOT NULL
GROUP BY records.value_id, records.client, records.sent_p, records.sent_key, records.first_slot,
  records.invoke_ns, records.complete_ns, copies.first_slot DIV {SLOT}
"""
"""Copies of an application that promises order, and committed copies of the lab's copiers."""

_NEIGHBOURS = f"""
SELECT *,
  LAG(copy_slot) OVER (PARTITION BY p, sent_key, copy_slot DIV {SLOT}
    ORDER BY first_slot) AS prev_copy_slot,
  LAG(value_id) OVER (PARTITION BY p, sent_key, copy_slot DIV {SLOT}
    ORDER BY first_slot) AS prev_value_id
FROM ({_COPIED}) copies
"""

GUARANTEE = Guarantee(
    name="reordered_copy",
    rank=20,
    about="copies of two records of one key are in another order than the records",
    promise="An application that promises order processes the records of a key in the order of "
    "their offsets.",
    source="Kafka documentation, 4.6 Message Delivery Semantics; Kafka Streams, Core Concepts: "
    "Ordering Guarantees",
    sub_kinds={
        "order": "the first copy of a record precedes that of an earlier record of its key",
    },
    details=(
        "Judged are first copies in one partition of the output, of records of one key and "
        "partition.",
    ),
    not_counted=(
        "Applications that do not promise order; the lab's copiers do.",
        "Records that the input holds several times.",
        "Inputs before an unclean election, or a disk that lost records (permitted).",
    ),
    opportunities=f"SELECT COUNT(prev_copy_slot) AS n FROM ({_NEIGHBOURS}) neighbours",
    violations=f"""
SELECT 'order' AS sub_kind, p, first_slot % {SLOT} AS off, invoke_ns AS at_ns,
  complete_ns AS until_ns, value_id, client, prev_value_id,
  copy_slot % {SLOT} AS copy_off, prev_copy_slot % {SLOT} AS prev_copy_off
FROM ({_NEIGHBOURS}) neighbours WHERE copy_slot < prev_copy_slot""",
    excuses=(
        Excuse(
            when="EXISTS (SELECT 1 FROM partitions WHERE spoilt_ns IS NOT NULL)",
            reason="an unclean election or a lost disk may have destroyed copies",
            reads=("partitions.spoilt_ns",),
        ),
    ),
    explain=lambda row: (
        f"the copy of {row['value_id']} at {place(row)} is at offset {row['copy_off']} of the "
        f"output, before that of the earlier {row['prev_value_id']} at {row['prev_copy_off']}."
    ),
    excused_by_times=True,
    copies_lost_elsewhere=True,
    reads=("records", "partitions", "settings", "txn_p"),
    rests_on=(*RECORDS, "txns"),
    subjects=("partitions.copies", "txn_p"),
)
