"""A deleted key remains deleted.

In offset order, a key whose last record is a tombstone shows no value. A pass that took longer
than delete.retention.ms may have seen the value and missed the tombstone."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.guarantees.compaction.keyed_sends import keys_of
from urteil.harness.verify.guarantees.compaction.keys import latest, older
from urteil.harness.verify.guarantees.losses import losable
from urteil.harness.verify.reference import SmallHistory, Violation


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A key whose last record is a tombstone shows no value.

    Left out: passes that took longer than delete.retention.ms.
    """
    for key in keys_of(history):
        for where, send in key.outdated_values(tombstone=True):
            yield key.partition.violation(where, send.offset, send.value_id)


GUARANTEE = Guarantee(
    name="resurrected_key",
    rank=30,
    about="a deleted key shows a value again",
    promise="A message with a key and a null payload is treated as a delete from the log: it "
    "removes any prior message with that key, as for any new message with it.",
    source="Kafka documentation, 4.8 Log Compaction: delete.retention.ms",
    sub_kinds={
        "in the log": "in the final leader's log",
        "in a pass": "in a complete final pass",
    },
    details=(
        "A key is judged when all its sends are resolved: acknowledged with an offset, or "
        "certainly failed. Its last record has the highest offset.",
    ),
    not_counted=("Passes that took longer than delete.retention.ms.",),
    occasion=Occasion.COMPACTION,
    opportunities=latest(1),
    violations=older(1, excused="shown_values.duration_ns <= partitions.delete_retention_ns"),
    excuses=losable("violation.latest_off"),
    explain=lambda row: (
        f"Key {row['key']!r} was deleted by {row['latest_value_id']} at offset "
        f"{row['latest_off']}, yet shows {row['value_id']} at {place(row)} ({row['sub_kind']})."
    ),
    compares_times=True,
    reads=(
        *("keyed", "partitions", "floors", "damaged", "reads", "passes"),
        *("partitions.lost_floor", "partitions.unclean_on"),
    ),
    subjects=("partitions.compacted",),
    reference=_reference,
)
