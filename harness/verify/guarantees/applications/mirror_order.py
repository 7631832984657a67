"""A mirrored partition has the order of its source.

After a restart MirrorMaker may mirror the last records again, behind later ones. So the first copy
of each record counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.applications.mirrored_pairs import PAIRS, SPOILT, pairs_of
from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.reference import SmallHistory, Violation

_NEIGHBOURS = f"""
SELECT *, LAG(copy_off) OVER (PARTITION BY p, copy_p ORDER BY off) AS prev_copy_off
FROM ({PAIRS}) pairs WHERE copy_p IS NOT NULL
"""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "order":
        return (
            f"{row['value_id']} at {place(row)} was mirrored to offset {row['copy_off']}, before "
            f"the record ahead of it, which is at {row['prev_copy_off']}."
        )
    return f"{row['value_id']} at {place(row)} was mirrored to another partition than its own."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """The first copies of a source's records are in its mirror, and in the source's order; those
    of another partition are compared among themselves."""
    for mirror in history.derived_rows("mirrors"):
        last: dict[tuple[str, int], int] = {}
        for pair in sorted(pairs_of(history, mirror), key=lambda pair: pair.offset):
            if pair.copy is None:
                continue
            topic, partition, offset = pair.copy
            before = last.get((topic, partition), -1)
            last[topic, partition] = offset
            if (topic, partition) != (pair.mirror.topic, pair.mirror.partition):
                yield pair.source.violation("partition", pair.offset, pair.value)
            elif offset < before:
                yield pair.source.violation("order", pair.offset, pair.value)


GUARANTEE = Guarantee(
    name="mirror_order",
    rank=40,
    about="a mirrored partition has another order, or other records, than its source",
    promise="MirrorMaker preserves the partition of each record, and the order in a partition.",
    source="KIP-382; Kafka documentation, 6.3 Geo-Replication",
    sub_kinds={
        "order": "the first copy of a record precedes that of an earlier record",
        "partition": "the copy of a record is in another partition than its own",
    },
    not_counted=(
        "Repeated copies behind later ones, as after a restart.",
        "Records that the source holds several times.",
        "Sources before an unclean election, or a disk that lost records (permitted).",
    ),
    occasion=Occasion.MIRROR,
    opportunities=f"SELECT COUNT(*) AS n FROM ({_NEIGHBOURS}) neighbours",
    violations=f"""
SELECT CASE WHEN copy_p <> mirror_p THEN 'partition' ELSE 'order' END AS sub_kind, p, off,
  invoke_ns AS at_ns, complete_ns AS until_ns, value_id, client, copy_off,
  prev_copy_off, spoilt
FROM ({_NEIGHBOURS}) neighbours WHERE copy_p <> mirror_p OR copy_off < prev_copy_off""",
    excuses=(SPOILT,),
    explain=_explain,
    excused_by_times=True,
    copies_lost_elsewhere=True,
    reads=("records", "mirrors", "partitions"),
    subjects=("mirrors",),
    reference=_reference,
)
