"""Mirrored partitions: each record of a source with its place in the mirror, in SQL and in plain
Python."""

from __future__ import annotations

from dataclasses import dataclass

from urteil.harness.verify.guarantees.base import SLOT, Excuse
from urteil.harness.verify.guarantees.losses import LOST_RECORDS
from urteil.harness.verify.reference import Partition, Place, Row, SmallHistory, places_of

PAIRS = f"""
SELECT mirrors.p AS mirror_p, records.sent_p AS p, records.value_id, records.client,
  records.invoke_ns, records.complete_ns, records.first_slot % {SLOT} AS off,
  copies.first_slot DIV {SLOT} AS copy_p, copies.first_slot % {SLOT} AS copy_off,
  copies.last_slot DIV {SLOT} AS last_copy_p, copies.last_slot % {SLOT} AS last_copy_off,
  CASE WHEN partitions.losses_ns IS NULL AND copy_partitions.losses_ns IS NULL THEN 0
       ELSE 1 END AS spoilt
FROM mirrors JOIN records ON records.sent_p = mirrors.source_p
JOIN partitions ON partitions.p = mirrors.source_p JOIN partitions copy_partitions
  ON copy_partitions.p = mirrors.p
LEFT JOIN records copies ON copies.value_id = 'copy/' || records.value_id
  AND copies.first_slot IS NOT NULL
WHERE records.sent = 1 AND records.n_slots = 1 AND records.log_slots = 1
"""
"""The records that a mirrored partition finally holds once; `copy_p` is null without a copy."""

SPOILT = Excuse(
    when="violation.spoilt = 1",
    reason="an unclean election or a lost disk may have destroyed records or copies",
    reads=("partitions.losses_ns",),
    permits=LOST_RECORDS,
)


@dataclass(frozen=True)
class Pair:
    """A record that a source finally holds once, with the places of its copies in final logs."""

    source: Partition
    mirror: Partition
    value: str
    offset: int
    copies: list[Place]

    @property
    def copy(self) -> Place | None:
        """The first copy."""
        return min(self.copies, default=None)


def pairs_of(history: SmallHistory, mirror: Row) -> list[Pair]:
    """The records of a mirrored partition, for a row of the derived table `mirrors`."""
    source, target = (history.partition_by_p[p] for p in (mirror.source_p, mirror.p))
    pairs = []
    for send in source.sends:
        records = places_of(history.records_of[send.value_id])
        copies = places_of(history.records_of[f"copy/{send.value_id}"])
        if len(history.places_of_send(send)) == 1 and len(records) == 1:
            pairs.append(Pair(source, target, send.value_id, records[0][2], copies))
    return pairs
