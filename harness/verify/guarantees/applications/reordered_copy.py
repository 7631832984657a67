"""An application that processes records in order keeps the order of each key.

Records of one key and partition reach the application in the order of their offsets. Their copies,
by one idempotent producer into one partition, then have the same order. An application that
reprocesses uncommitted records repeats copies behind later ones, so the first copy of each record
counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from urteil.harness.verify.guarantees.base import RECORDS, SLOT, Excuse, Guarantee, Occasion, place
from urteil.harness.verify.guarantees.losses import LOST_RECORDS
from urteil.harness.verify.guarantees.transactions.offsets_not_atomic import SPOILT_NS
from urteil.harness.verify.reference import (
    Partition,
    Place,
    Row,
    SmallHistory,
    Violation,
    places_of,
)

_COPIED = f"""
SELECT records.value_id, records.client, records.sent_p AS p, records.sent_key, records.first_slot,
  records.invoke_ns, records.complete_ns, copies.first_slot AS copy_slot
FROM records JOIN partitions ON partitions.p = records.sent_p JOIN records copies
  ON copies.value_id = 'copy/' || records.value_id
WHERE records.sent = 1 AND records.n_slots = 1 AND records.log_slots = 1
  AND records.sent_key IS NOT NULL AND partitions.in_run = 1 AND partitions.copies = 0
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
    ORDER BY first_slot) AS prev_value_id,
  LAG(invoke_ns) OVER (PARTITION BY p, sent_key, copy_slot DIV {SLOT}
    ORDER BY first_slot) AS prev_ns
FROM ({_COPIED}) copies
"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """The first copies of records of one key and partition, in one partition of the output, have
    the order of the records."""
    for partition in history.partitions:
        copies: dict[tuple[str, str, int], list[tuple[Place, Place, str]]] = defaultdict(list)
        for send in partition.sends:
            records = places_of(history.records_of[send.value_id])
            if send.key is not None and len(history.places_of_send(send)) == len(records) == 1:
                for copy in _first_copies(history, partition, send):
                    copies[send.key, *copy[:2]].append((records[0], copy, send.value_id))
        for places in copies.values():
            for (_, before, _), (record, copy, value) in pairwise(sorted(places)):
                if copy < before:
                    yield partition.violation("order", record[2], value)


def _first_copies(history: SmallHistory, partition: Partition, send: Row) -> list[Place]:
    """The first copy by an application that promises order, and the first one in each partition by
    the lab's copiers, which commit."""
    reordered = []
    copies = places_of(history.records_of[f"copy/{send.value_id}"])
    is_input = partition.part.in_run and not partition.part.copies
    if history.run_settings.get("ordered") and is_input and copies:
        reordered.append(copies[0])
    made: list[Place] = []
    for output in history.outputs_of[send.value_id]:
        places = places_of(history.records_of[output.value_id])
        is_committed = history.fate_of(output) == "committed" and not history.may_end_late(output)
        if is_committed and len(places) == 1:
            made += places
    by_partition = {place[:2]: place for place in sorted(made, reverse=True)}
    return [*reordered, *by_partition.values()]


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
        "Inputs that were sent before all brokers knew of an unclean election, or of a disk that "
        "lost records, where it may have destroyed inputs, copies or offsets (permitted).",
    ),
    occasion=Occasion.PIPELINE,
    opportunities=f"SELECT COUNT(prev_copy_slot) AS n FROM ({_NEIGHBOURS}) neighbours",
    violations=f"""
SELECT 'order' AS sub_kind, neighbours.p, first_slot % {SLOT} AS off, invoke_ns AS at_ns,
  complete_ns AS until_ns, value_id, client, prev_value_id,
  copy_slot % {SLOT} AS copy_off, prev_copy_slot % {SLOT} AS prev_copy_off,
  CASE WHEN LEAST(invoke_ns, prev_ns) < partitions.losses_ns
    OR LEAST(invoke_ns, prev_ns) < {SPOILT_NS} THEN 1 ELSE 0 END AS spoilt
FROM ({_NEIGHBOURS}) neighbours JOIN partitions ON partitions.p = neighbours.p
WHERE copy_slot < prev_copy_slot""",
    excuses=(
        Excuse(
            when="violation.spoilt = 1",
            reason="an unclean election or a lost disk may have destroyed copies",
            permits=LOST_RECORDS,
        ),
    ),
    explain=lambda row: (
        f"the copy of {row['value_id']} at {place(row)} is at offset {row['copy_off']} of the "
        f"output, before that of the earlier {row['prev_value_id']} at {row['prev_copy_off']}."
    ),
    excused_by_times=True,
    copies_lost_elsewhere=True,
    reads=("records", "partitions", "settings", "txn_p", "partitions.losses_ns"),
    rests_on=(*RECORDS, "txns"),
    subjects=("partitions.copies", "txn_p"),
    reference=_reference,
)
