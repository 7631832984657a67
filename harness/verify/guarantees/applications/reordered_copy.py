"""An application that processes records in order keeps the order of each key.

Records of one key and partition reach the application in the order of their offsets. Their copies,
by one idempotent producer into one partition, then have the same order. An application that
processes again what it did not commit repeats copies behind later ones, so the first copy of each
record counts."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import RECORDS, SLOT, Excuse, Guarantee, place

_COPIED = f"""
SELECT v.value_id, v.client, v.sent_p AS p, v.sent_key, v.first_slot, v.invoke_ns, v.complete_ns,
  w.first_slot AS copy_slot
FROM vals v JOIN parts q ON q.p = v.sent_p JOIN vals w ON w.value_id = 'copy/' || v.value_id
WHERE v.sent = 1 AND v.n_slots = 1 AND v.log_slots = 1 AND v.sent_key IS NOT NULL
  AND q.ours = 1 AND q.copies = 0 AND w.first_slot IS NOT NULL
  AND (SELECT MAX(z.ordered) FROM settings z) = 1
UNION ALL
SELECT v.value_id, v.client, v.sent_p, v.sent_key, v.first_slot, v.invoke_ns, v.complete_ns,
  MIN(w.first_slot)
FROM vals w JOIN vals v ON v.value_id = w.source
JOIN txn_p t ON t.client = w.client AND t.session = w.session AND t.txn = w.txn
WHERE t.fate = 'committed' AND t.late = 0 AND w.log_slots = 1 AND v.sent = 1 AND v.n_slots = 1
  AND v.log_slots = 1 AND v.sent_key IS NOT NULL
GROUP BY v.value_id, v.client, v.sent_p, v.sent_key, v.first_slot, v.invoke_ns, v.complete_ns,
  w.first_slot DIV {SLOT}
"""
"""Copies of an application that promises order, and committed copies of the lab's copiers."""

_NEIGHBOURS = f"""
SELECT c.*,
  LAG(c.copy_slot) OVER (PARTITION BY c.p, c.sent_key, c.copy_slot DIV {SLOT}
    ORDER BY c.first_slot) AS prev_copy_slot,
  LAG(c.value_id) OVER (PARTITION BY c.p, c.sent_key, c.copy_slot DIV {SLOT}
    ORDER BY c.first_slot) AS prev_value_id
FROM ({_COPIED}) c
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
    opportunities=f"SELECT COUNT(c.prev_copy_slot) AS n FROM ({_NEIGHBOURS}) c",
    violations=f"""
SELECT 'order' AS sub_kind, c.p, c.first_slot % {SLOT} AS off, c.invoke_ns AS at_ns,
  c.complete_ns AS until_ns, c.value_id, c.client, c.prev_value_id,
  c.copy_slot % {SLOT} AS copy_off, c.prev_copy_slot % {SLOT} AS prev_copy_off
FROM ({_NEIGHBOURS}) c WHERE c.copy_slot < c.prev_copy_slot""",
    excuses=(
        Excuse(
            when="EXISTS (SELECT 1 FROM parts d WHERE d.spoilt_ns IS NOT NULL)",
            reason="an unclean election or a lost disk may have destroyed copies",
            reads=("parts.spoilt_ns",),
        ),
    ),
    explain=lambda row: (
        f"the copy of {row['value_id']} at {place(row)} is at offset {row['copy_off']} of the "
        f"output, before that of the earlier {row['prev_value_id']} at {row['prev_copy_off']}."
    ),
    excused_by_times=True,
    copies_lost_elsewhere=True,
    reads=("vals", "parts", "settings", "txn_p"),
    rests_on=(*RECORDS, "txns"),
    subjects=("parts.copies", "txn_p"),
)
