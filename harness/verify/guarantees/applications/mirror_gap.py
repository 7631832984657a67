"""A mirror lacks only the end of its source.

MirrorMaker copies the records of a partition in order and resumes at its committed offset, so at
any moment the mirror holds a prefix of the source. If the source's cluster is lost, exactly the
records behind that prefix are lost (the recovery point). If a record is missing and a later one was
mirrored, MirrorMaker skipped the record."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.guarantees.applications.mirrored_pairs import PAIRS, SPOILT, pairs_of
from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.reference import SmallHistory, Violation

_REACHED = f"""
SELECT *, MAX(CASE WHEN copy_p IS NOT NULL THEN off END) OVER (PARTITION BY p) AS reached
FROM ({PAIRS}) pairs
"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Each record that the source finally holds once, before the last mirrored one, has a copy."""
    for mirror in history.derived_rows("mirrors"):
        pairs = pairs_of(history, mirror)
        reached = max((pair.offset for pair in pairs if pair.copy), default=-1)
        for pair in pairs:
            if pair.copy is None and pair.offset < reached:
                yield pair.source.violation("skipped", pair.offset, pair.value)


GUARANTEE = Guarantee(
    name="mirror_gap",
    rank=30,
    about="a record is missing from a mirror that holds a later record of its partition",
    promise="MirrorMaker mirrors a partition from its begin on, in order and without a gap.",
    source="KIP-382; Kafka documentation, 6.3 Geo-Replication",
    sub_kinds={"skipped": "no copy of the record, and one of a later record"},
    not_counted=(
        "Records behind the last mirrored one: they are what a failover loses, and `unprocessed` "
        "counts them.",
        "Records that the source holds several times.",
        "Sources before an unclean election, or a disk that lost records (permitted).",
    ),
    occasion=Occasion.MIRROR,
    opportunities=f"SELECT COUNT(*) AS n FROM ({_REACHED}) progress WHERE off <= reached",
    violations=f"""
SELECT 'skipped' AS sub_kind, p, off, invoke_ns AS at_ns, complete_ns AS until_ns,
  value_id, client, reached, spoilt
FROM ({_REACHED}) progress WHERE copy_p IS NULL AND off < reached""",
    excuses=(SPOILT,),
    explain=lambda row: (
        f"{row['value_id']} at {place(row)} was not mirrored, though the record at "
        f"{row['reached']} of its partition was."
    ),
    excused_by_times=True,
    copies_lost_elsewhere=True,
    reads=("records", "mirrors", "partitions"),
    subjects=("mirrors",),
    reference=_reference,
)
