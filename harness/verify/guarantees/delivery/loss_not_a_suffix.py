"""An unclean election loses a suffix: the records that the new leader lacked from its epoch's
start.

Judged where an unclean election happened. A lost record below the start of every unclean epoch that
began after its send was not lost by one of these elections."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.guarantees.base import Guarantee, Occasion, count_records, place
from urteil.harness.verify.guarantees.delivery.lost_write import LOST
from urteil.harness.verify.reference import (
    Partition,
    Row,
    SmallHistory,
    Violation,
    acknowledged_offset,
)


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """With unclean election a lost record was at or behind the begin of an unclean epoch after its
    send."""
    for partition in history.partitions:
        part = partition.part
        if not part.unclean_on or part.unclean_floor >= part.log_end:
            continue
        for send in () if part.compacted else partition.sends:
            reads = history.reads_of[send.value_id]
            offset = acknowledged_offset(send)
            if offset is None and reads:
                offset = reads[0].offset
            is_due = send.outcome == "ok" or (send.outcome != "fail" and reads)
            is_lost = is_due and not history.records_of[send.value_id] and send.acks == -1
            if not is_lost or offset is None or offset < part.log_start:
                continue
            if offset < _first_losable(partition, send):
                yield partition.violation("below the epoch", offset, send.value_id)


def _first_losable(partition: Partition, send: Row) -> int:
    """The first offset that an unclean election may have lost: an election after the send, or an
    earlier one that the answering broker did not know yet."""
    for span in partition.derived_rows("floors"):
        if span.from_ns <= send.invoke_ns < span.to_ns:
            losses_ns = partition.part.losses_ns or 0
            if send.node != span.leader and send.invoke_ns < losses_ns:
                return int(partition.part.unclean_floor)
            return int(span.unclean_floor or 0)
    return 0


GUARANTEE = Guarantee(
    name="loss_not_a_suffix",
    rank=30,
    about="an unclean election lost records below the start of its epoch",
    promise="Unclean leader election may lose the messages that the new leader did not have; "
    "records below the offset at which their logs diverge are kept.",
    source="Kafka documentation, 4.7 Replication: Unclean leader election; KIP-101",
    sub_kinds={
        "below the epoch": "lost below the start of every unclean epoch after its send",
    },
    details=(
        "Judged are acks=all records of runs with unclean election: a lost one must not be below "
        "the start of every unclean epoch that began after its send.",
    ),
    not_counted=("Runs without unclean election.",),
    occasion=Occasion.UNCLEAN_ELECTION,
    opportunities=count_records(
        "FROM records JOIN partitions ON partitions.p = records.sent_p "
        "WHERE records.outcome = 'ok' AND records.acks = -1 "
        "AND partitions.unclean_on = 1 AND partitions.unclean_floor < partitions.log_end"
    ),
    violations=f"""
SELECT 'below the epoch' AS sub_kind, losses.p, losses.off, losses.at_ns, losses.until_ns,
  losses.value_id, losses.client, losses.unclean_floor
FROM ({LOST}) losses JOIN partitions ON partitions.p = losses.p
WHERE losses.unclean_on = 1 AND losses.acks = -1 AND losses.log_slots = 0
  AND losses.off < losses.unclean_floor
  AND partitions.unclean_floor < partitions.log_end""",
    explain=lambda row: (
        f"{row['value_id']} was acknowledged with acks=all at {place(row)} and is lost, below "
        "where any unclean epoch after it began."
    ),
    excused_by_times=True,
    needs=("sends", "replicas", "states"),
    reads=(
        *(
            "slots",
            "irregular_values",
            "known_commits",
            "unplaced",
            "record_counts",
            "ticks",
            "partitions",
            "floors",
        ),
        *("partitions.flushed_ns", "partitions.lost_floor"),
        *("partitions.losses_ns", "partitions.unclean_on"),
    ),
    reference=_reference,
)
