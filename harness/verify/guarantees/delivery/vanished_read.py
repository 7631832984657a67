"""A record that was readable once remains readable.

All complete final passes over an offset return the same, whichever replica led meanwhile, and
they include each record read during the run. Left out are markers, transactional records under
read_committed, compacted topics and offsets below the log start."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.guarantees.losses import LOSSES
from urteil.harness.verify.reference import SmallHistory, Violation

_JUDGED = """
FROM slots JOIN partitions ON partitions.p = slots.p
WHERE slots.value_id IS NOT NULL AND slots.mask <> 0 AND slots.n_reads > 0 AND slots.marks < 2
  AND partitions.compacted = 0 AND slots.off >= partitions.log_start
"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Every final pass over the offset of a received record delivers that record."""
    for partition in history.partitions:
        places = {(row.offset, row.value_id) for row in partition.reads if row.value_id is not None}
        for offset, value in () if partition.is_compacted else places:
            owing = partition.owing_passes(offset, value)
            missing = [
                final_pass for final_pass in owing if not final_pass.has_delivered(offset, value)
            ]
            is_in_any = any(
                final_pass.has_delivered(offset, value) for final_pass in partition.final_passes
            )
            if missing and offset >= partition.start:
                kind = "between passes" if is_in_any else "gone"
                yield partition.violation(kind, offset, value)


GUARANTEE = Guarantee(
    name="vanished_read",
    rank=110,
    about="a record that was read is missing for another reader",
    promise="Only committed messages are given out to consumers, so that they need not worry "
    "about seeing a message that could be lost if the leader fails.",
    source="Kafka documentation, 4.7 Replication",
    sub_kinds={
        "gone": "a record that was read is in none of the final passes over it",
        "between passes": "it is only in some",
    },
    not_counted=(
        "Markers, compacted topics and offsets below the log start.",
        "Without logs also passes of readers of committed records where there are others, and "
        "records of transactions that were not committed.",
    ),
    unused_evidence=(
        "Live readers that passed over a record which another live reader received: "
        "`poll_skip` compares each of them with the final log.",
    ),
    opportunities=f"SELECT COUNT(*) AS n {_JUDGED}",
    violations=f"""
SELECT CASE WHEN slots.seen = 0 THEN 'gone' ELSE 'between passes' END AS sub_kind, slots.p,
  slots.off, slots.read_ns AS at_ns, slots.read_ns AS until_ns, slots.value_id, slots.n_reads,
  bit_count(slots.seen & slots.mask) AS passes_with, bit_count(slots.mask) AS passes_over,
  partitions.unclean_on, partitions.unclean_floor, partitions.lost_floor, partitions.losses_ns
{_JUDGED} AND (slots.seen & slots.mask) <> slots.mask
  AND (partitions.has_log = 1 OR NOT EXISTS (SELECT 1 FROM irregular_values records
    LEFT JOIN txn_p transactions ON transactions.client = records.client
      AND transactions.session = records.session AND transactions.txn = records.txn
    WHERE records.value_id = slots.value_id AND records.txn IS NOT NULL
      AND COALESCE(transactions.fate, '') <> 'committed'))""",
    excuses=LOSSES,
    explain=lambda row: (
        f"{row['value_id']} was read at {place(row)}, but only {row['passes_with']} of "
        f"{row['passes_over']} complete final passes over that offset delivered it."
    ),
    excused_by_times=True,
    needs=("reads", "passes"),
    reads=("slots", "irregular_values", "partitions", "txn_p"),
    reference=_reference,
)
