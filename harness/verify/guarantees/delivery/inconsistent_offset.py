"""One offset holds one record, for every reader at every time.

Compared are reads, the final leader's log and acknowledgements with acks=all. Acknowledgements with
acks=1 are left out: a failover truncates their offsets and reuses them, which acks=1 permits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.guarantees.losses import LOSSES_SHOWN
from urteil.harness.verify.limits import FOREVER_NS
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset


def _explain(row: Mapping[str, Any]) -> str:
    records = f"{row['rivals']} records"
    among = f"among them {row['value_id']} and {row['other_value_id']}"
    if row["all_shown"]:
        return f"{place(row)} showed {records}, {among}."
    return f"Reads and acknowledgements name {records} at {place(row)}, {among}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Reads, the final leader's log and acknowledgements with acks=all name one value at an offset.

    Left out: whether a reader or an acknowledgement names the other one.
    """
    for partition in history.partitions:
        named = {(row.offset, row.value_id) for row in partition.reads + partition.log}
        named |= {(acknowledged_offset(send), send.value_id)
                  for send in partition.sends if send.acks == -1}  # fmt: skip
        for offset in {offset for offset, _ in named if offset is not None}:
            values = sorted(value for at, value in named if at == offset and value is not None)
            if len(values) > 1:
                yield partition.violation(None, offset, values[0])


GUARANTEE = Guarantee(
    name="inconsistent_offset",
    rank=90,
    about="one offset showed two different records",
    promise="The offset uniquely identifies each record within the partition, and committed "
    "records do not change.",
    source="Kafka documentation, 1.1 Introduction; 4.7 Replication",
    sub_kinds={
        "read": "a reader or the final leader's log shows one of the records",
        "acknowledgement": "only acknowledgements show one of the records",
    },
    details=("Compared are reads, the final leader's log and acknowledgements with acks=all.",),
    not_counted=("Acknowledgements with acks=1.",),
    opportunities="SELECT COUNT(*) AS n FROM slots WHERE value_id IS NOT NULL "
    "AND n_reads + on_leader + acked_all >= 2",
    violations=f"""
SELECT CASE WHEN MAX(CASE WHEN slots.acked_all > 0 THEN 1 ELSE 0 END) = 1
    AND MIN(CASE WHEN slots.acked_all > 0 THEN 0 ELSE 1 END) = 0 AND MAX(slots.n_reads) = 0
    THEN 'acknowledgement' ELSE 'read' END AS sub_kind,
  slots.p, slots.off, MIN(slots.read_ns) AS at_ns, MIN(slots.read_ns) AS until_ns,
  MIN(slots.value_id) AS value_id, MAX(slots.value_id) AS other_value_id, COUNT(*) AS rivals,
  MIN(CASE WHEN slots.n_reads > 0 OR slots.on_leader = 1 THEN 1 ELSE 0 END) AS all_shown,
  MAX(partitions.unclean_on) AS unclean_on,
  MAX(partitions.unclean_floor) AS unclean_floor, MAX(partitions.lost_floor) AS lost_floor,
  MAX(partitions.losses_ns) AS losses_ns, COALESCE(MAX(CASE WHEN slots.on_leader = 0
    THEN COALESCE(slots.read_ns, records.complete_ns) END), {FOREVER_NS}) AS known_ns
FROM slots JOIN shared ON shared.slot = slots.slot JOIN partitions ON partitions.p = slots.p
LEFT JOIN irregular_values records ON records.value_id = slots.value_id
WHERE shared.rivals > 1 AND slots.value_id IS NOT NULL
  AND (slots.n_reads > 0 OR slots.on_leader = 1 OR slots.acked_all > 0)
GROUP BY slots.p, slots.off""",
    excuses=LOSSES_SHOWN,
    explain=_explain,
    excused_by_times=True,
    reads=("slots", "irregular_values", "shared", "partitions"),
    reference=_reference,
)
