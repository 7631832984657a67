"""A compacted topic retains at least the last value of every key.

The last record of a key is known if every send of the key is resolved: acknowledged with an offset,
or certainly failed. With unresolved sends, the log must show the last known value, or an unresolved
one at or behind its place: a log that shows neither lacks the last value. If a value was written
twice, a reader may receive only the second copy, since the cleaner may have removed the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.reference import SmallHistory, Violation

_JUDGED = f"""
WHERE {LAST}
  AND keyed.tombstone = 0 AND partitions.has_log = 1 AND keyed.off >= partitions.log_start
"""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "not on a follower":
        defect = (
            f"only {count_text(row['copies'], 'replica')} of those whose logs reach so far have it"
        )
    elif row["sub_kind"] == "not served":
        defect = "a complete final pass over that offset did not deliver it"
    elif row["shown_off"] is None:
        defect = "the key is not in the final leader's log at all"
    else:
        defect = (
            f"the last that the final leader's log has of the key is at offset {row['shown_off']}"
        )
    return (
        f"{row['value_id']}, the last value of key {row['key']!r}, was at {place(row)}; {defect}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """The last value of a key is in the final leader's log, in every log over its offset, and in
    the final passes over it."""
    for key in keys_of(history):
        for send in key.latest(tombstone=False):
            if send.is_unserved:
                kind = "not served"
            elif send.logged_offsets:
                kind = "not on a follower" if send.copies < send.covering_logs else ""
            elif send.copies:
                kind = "on some replicas"
            else:
                kind = "absent" if key.shown_offset is None else "older shown"
            if kind:
                yield key.partition.violation(kind, send.offset, send.value_id)


GUARANTEE = Guarantee(
    name="latest_value_lost",
    rank=10,
    about="the last value of a key is missing from a compacted topic",
    promise="Log compaction ensures that Kafka will always retain at least the last known value "
    "for each message key within the log of data for a single topic partition.",
    source="Kafka documentation, 4.8 Log Compaction",
    sub_kinds={
        "absent": "no record of the key is in the final leader's log",
        "older shown": "the final leader's log has only older records of the key",
        "on some replicas": "other replicas have the value, the final leader does not",
        "not on a follower": "it is not in the log of a replica whose log goes beyond it",
        "not served": (
            "it is not in a final pass over it, for committed transactions also in one of readers "
            "of committed records"
        ),
    },
    details=(
        "A key is judged when all its sends are resolved: acknowledged with an offset, or "
        "certainly failed. Its last record has the highest offset.",
        "With unresolved sends, none of them a tombstone, a key is judged where the final "
        "leader's log shows neither its last known value, acknowledged or read, nor anything of "
        "the key behind that.",
        "A record that a producer without idempotence sent several times may arrive once more: "
        "its last copy counts, and a tombstone of that kind is unresolved.",
        "`absent`, `older shown`, `on some replicas`: the last value is not in the final leader's "
        "log.",
    ),
    not_counted=(
        "Keys with other unresolved sends, those of transactions of unknown fate among them, also "
        "where an unclean election happened or a disk lost records. Records of aborted "
        "transactions are not values.",
        "What `lost_write` permits.",
        "`not served` of values that were written twice, of which the first may be cleaned.",
    ),
    unused_evidence=(
        "Passes over keys with unresolved sends: the last value may lie behind the end of "
        "the pass.",
    ),
    occasion=Occasion.COMPACTION,
    opportunities=f"SELECT COUNT(*) AS n FROM keyed JOIN partitions "
    f"ON partitions.p = keyed.p {_JUDGED}",
    violations=f"""
SELECT CASE WHEN {UNSERVED} THEN 'not served'
    WHEN keyed.log_slots > 0 THEN 'not on a follower' WHEN keyed.copies > 0 THEN 'on some replicas'
    WHEN keyed.shown_off IS NULL THEN 'absent' ELSE 'older shown' END AS sub_kind,
  keyed.p, keyed.off, keyed.invoke_ns AS at_ns, keyed.complete_ns AS until_ns, keyed.value_id,
  keyed.client, keyed.key, keyed.shown_off, keyed.copies, {EXCUSE_COLUMNS}
FROM keyed JOIN partitions ON partitions.p = keyed.p
LEFT JOIN cover ON cover.p = keyed.p AND keyed.off >= cover.lo
  AND keyed.off < cover.hi {COMMITTED} {FLOORS} {_JUDGED}
  AND (keyed.log_slots = 0 OR {UNSERVED}
    OR (keyed.copies < cover.copies AND keyed.off < partitions.agreed_end))""",
    excuses=only_where("violation.sub_kind <> 'not served'", losable()),
    explain=_explain,
    excused_by_times=True,
    reads=(
        *("committed", "keyed", "partitions", "cover", "floors"),
        *("partitions.lost_floor", "partitions.unclean_on"),
    ),
    subjects=("partitions.compacted",),
    reference=_reference,
)
