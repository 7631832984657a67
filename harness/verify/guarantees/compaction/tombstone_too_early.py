"""A tombstone stays for delete.retention.ms, so that readers receive the deletion.

The time counts from the invocation of its send, which is before the cleaner begins to count.
Overwritten tombstones may be removed at once. Nothing is judged where a clock was moved."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.guarantees.base import Guarantee, Occasion, only_where, place
from urteil.harness.verify.guarantees.compaction.keyed_sends import keys_of
from urteil.harness.verify.guarantees.compaction.keys import (
    COMMITTED,
    EXCUSE_COLUMNS,
    FLOORS,
    LAST,
    UNSERVED,
)
from urteil.harness.verify.guarantees.losses import losable
from urteil.harness.verify.limits import STOPPING_NS
from urteil.harness.verify.reference import SmallHistory, Violation

_JUDGED = f"""
WHERE {LAST}
  AND keyed.tombstone = 1 AND partitions.has_log = 1 AND keyed.off >= partitions.log_start
  AND partitions.clock_moved = 0 AND partitions.trimmed = 0
"""
_YOUNG = (
    f"AND partitions.ends_ns + {STOPPING_NS} < keyed.invoke_ns + partitions.delete_retention_ns"
)


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """The tombstone that ends a key is in every log over its offset, and in the final passes over
    it.

    Left out: old tombstones. Histories are shorter than delete.retention.ms.
    """
    for key in keys_of(history):
        for send in key.latest(tombstone=True):
            if not send.logged_offsets:
                yield key.partition.violation("absent", send.offset, send.value_id)
            elif send.copies < send.covering_logs:
                yield key.partition.violation("on some replicas", send.offset, send.value_id)
            elif send.is_unserved:
                yield key.partition.violation("not served", send.offset, send.value_id)


GUARANTEE = Guarantee(
    name="tombstone_too_early",
    rank=40,
    about="a tombstone was removed before delete.retention.ms had passed",
    promise="delete.retention.ms is the time to retain delete tombstone markers for log compacted "
    "topics: a bound on the time in which a consumer must complete a read from offset 0.",
    source="Kafka documentation, 3.2 Topic Configs: delete.retention.ms; KIP-534",
    sub_kinds={
        "absent": "the final leader's log lacks the tombstone",
        "on some replicas": "a replica whose log covers the offset lacks the tombstone",
        "not served": "a complete final pass over the offset did not deliver the tombstone",
    },
    details=(
        "A key is judged when all its sends are resolved: acknowledged with an offset, or "
        "certainly failed. Its last record has the highest offset.",
        "The tombstone that ends a key is gone from a log or a final pass before its send's "
        "invocation + delete.retention.ms.",
    ),
    not_counted=(
        "Tombstones that were overwritten.",
        "Clock faults.",
    ),
    occasion=Occasion.COMPACTION,
    opportunities=f"SELECT COUNT(*) AS n FROM keyed JOIN partitions "
    f"ON partitions.p = keyed.p {_JUDGED} {_YOUNG}",
    violations=f"""
SELECT CASE WHEN keyed.log_slots > 0 AND keyed.copies >= cover.copies THEN 'not served'
    WHEN keyed.log_slots > 0 THEN 'on some replicas' ELSE 'absent' END AS sub_kind,
  keyed.p, keyed.off, keyed.invoke_ns AS at_ns, keyed.complete_ns AS until_ns, keyed.value_id,
  keyed.client, keyed.key, keyed.copies,
  (partitions.ends_ns - keyed.invoke_ns) DIV 1000000 AS age_ms,
    partitions.delete_retention_ns DIV 1000000 AS retention_ms, {EXCUSE_COLUMNS}
FROM keyed JOIN partitions ON partitions.p = keyed.p
LEFT JOIN cover ON cover.p = keyed.p AND keyed.off >= cover.lo
  AND keyed.off < cover.hi {COMMITTED} {FLOORS} {_JUDGED}
  {_YOUNG} AND (keyed.log_slots = 0 OR {UNSERVED} OR keyed.copies < cover.copies)""",
    excuses=only_where("violation.sub_kind <> 'not served'", losable()),
    explain=lambda row: (
        f"The tombstone {row['value_id']} of key {row['key']!r} at {place(row)} is gone "
        f"({row['sub_kind']}) at most {row['age_ms']} ms after it was sent; "
        f"delete.retention.ms is {row['retention_ms']}."
    ),
    compares_times=True,
    reads=(
        *("committed", "keyed", "partitions", "cover"),
        *("floors", "partitions.clock_moved", "partitions.trimmed"),
        *("partitions.lost_floor", "partitions.unclean_on"),
    ),
    subjects=("partitions.compacted",),
    reference=_reference,
)
