"""A mirrored partition has the order of its source.

After a restart MirrorMaker may mirror the last records again, behind later ones. So the first copy
of each record counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.applications.mirrored_pairs import PAIRS, SPOILT
from urteil.harness.verify.guarantees.base import Guarantee, place

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
)
