"""A translated offset skips no record that the group has not processed.

MirrorMaker translates the committed offsets of groups and commits them in the other cluster, so
that a consumer can continue there. Offsets of a mirror are not those of its source, so the
translation is judged by the copies: below the translated offset, no copy may be of a record at or
behind the group's position in the source. The lab reads the translated offsets repeatedly. The
group's position at a read is the highest offset that a member had begun to commit by then."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.guarantees.applications.mirrored_pairs import PAIRS, SPOILT, pairs_of
from urteil.harness.verify.guarantees.base import RECORDS, Guarantee, Occasion, place
from urteil.harness.verify.reference import SmallHistory, Violation

_SKIPPED = f"""
-- copies and translated offsets of a mirror in one order, each with the highest source offset below
WITH events AS (
  SELECT mirror_p, last_copy_off AS position, 1 AS is_copy, off AS source_off,
    CAST(NULL AS STRING) AS grp, CAST(NULL AS BIGINT) AS processed,
    CAST(NULL AS BIGINT) AS at_ns, CAST(NULL AS BIGINT) AS until_ns, spoilt
  FROM ({PAIRS}) pairs WHERE copy_p = mirror_p AND last_copy_p = mirror_p
  UNION ALL
  SELECT translations.p, translations.position, 0, CAST(NULL AS BIGINT), translations.grp,
    translations.processed, translations.at_ns, translations.until_ns, 0
  FROM translations)
SELECT events.mirror_p, events.position, events.is_copy, events.grp, events.processed, events.at_ns,
  events.until_ns,
  MAX(events.source_off) OVER (PARTITION BY events.mirror_p ORDER BY events.position, events.is_copy
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS skipped,
  MAX(events.spoilt) OVER (PARTITION BY events.mirror_p) AS spoilt
FROM events
"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """The last copy of a record that the group has not processed is not below a translated
    offset."""
    for mirror in history.derived_rows("mirrors"):
        pairs = pairs_of(history, mirror)
        for row in history.derived_rows("translations"):
            skipped = [
                pair
                for pair in pairs
                if pair.copies
                and all(place[:2] == (pair.mirror.topic, pair.mirror.partition)
                        for place in pair.copies)
                and max(pair.copies)[2] < row.position
                and pair.offset >= row.processed
            ]  # fmt: skip
            if row.p == mirror.p and skipped:
                partition = skipped[0].mirror
                yield partition.violation("too far", row.position, None, row.grp, row.at_ns)


GUARANTEE = Guarantee(
    name="translated_too_far",
    rank=50,
    about="a translated offset skips a record that its group has not processed",
    promise="MirrorMaker never translates a group's offset beyond the records that the group has "
    "processed.",
    source="KIP-382, KIP-545; KAFKA-12468",
    sub_kinds={"too far": "a copy below the translated offset is of a record not yet processed"},
    not_counted=(
        "Translated offsets that are too low: records are then processed twice.",
        "Records of which another copy is at or behind the translated offset.",
        "Sources before an unclean election, or a disk that lost records (permitted).",
    ),
    occasion=Occasion.MIRROR,
    opportunities="SELECT COUNT(*) AS n FROM translations WHERE translations.position > 0",
    violations=f"""
SELECT 'too far' AS sub_kind, skipped_records.mirror_p AS p, skipped_records.position AS off,
  skipped_records.at_ns, skipped_records.until_ns, skipped_records.grp, skipped_records.processed,
  skipped_records.skipped, skipped_records.spoilt
FROM ({_SKIPPED}) skipped_records WHERE skipped_records.is_copy = 0
  AND skipped_records.skipped >= skipped_records.processed""",
    excuses=(SPOILT,),
    explain=lambda row: (
        f"group {row['grp']} had the translated offset {row['off']} in {place(row)}: a consumer "
        f"that continues there skips the record at offset {row['skipped']} of the source, of which "
        f"the group had processed those below {row['processed']}."
    ),
    tie="finding.grp",
    excused_by_times=True,
    copies_lost_elsewhere=True,
    needs=("sends", "commits", "commit_reads"),
    reads=("records", "mirrors", "translations", "partitions"),
    rests_on=(*RECORDS, "commits", "commit_reads"),
    subjects=("translations",),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.grp, violation.at_ns)",
)
