"""An acknowledged record is in the final log.

A record is lost if it is missing from the final leader's log, or if a complete final pass over its
offset did not return it.

Not judged: compacted topics (see latest_value_lost), offsets below the log start, and sends of
unknown outcome that no consumer read. Nor is an acknowledgement without an offset judged if the
record may have been deleted: the log has no record that was acknowledged before its send. Losses
caused by disks are permitted, except for records that `flush.ms` had flushed on every replica
before (`flushed_ns`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import (
    SLOT,
    Guarantee,
    acks,
    count_records,
    only_where,
    place,
)
from urteil.harness.verify.guarantees.losses import losable
from urteil.harness.verify.limits import NO_OFFSET, OF_COMMIT, OWED
from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset

JUDGED = """
FROM records JOIN partitions ON records.sent_p = partitions.p
WHERE records.sent = 1 AND partitions.compacted = 0
  AND (partitions.has_log = 1 OR records.asked = 1)
  AND (records.outcome = 'ok' OR (records.outcome <> 'fail' AND records.n_reads > 0))
"""

UNCLEAN_FLOOR = """CASE WHEN COALESCE({0}.node, -2) <> floors.leader
  AND {0}.invoke_ns < {0}.losses_ns
  THEN {0}.least_floor ELSE COALESCE(floors.unclean_floor, 0) END"""
"""The first offset that an unclean election may have lost: an election after the send, or an
earlier one that the answering broker did not know yet."""

_SUSPECTS = f"""
FROM irregular_values records JOIN partitions ON records.sent_p = partitions.p {OF_COMMIT}
LEFT JOIN unplaced ON unplaced.value_id = records.value_id AND unplaced.passed = 1
WHERE records.sent = 1 AND partitions.compacted = 0
  AND (unplaced.passed = 1 OR (partitions.has_log = 1 OR records.read_asked = 1 OR records.asked = 1
                               AND records.n_reads = 0)
    AND (records.outcome = 'ok' OR (records.outcome <> 'fail' AND records.n_reads > 0)))
"""

LOST = f"""
SELECT CASE WHEN candidates.log_slots > 0 AND candidates.has_log = 1 THEN 'not served'
    ELSE (CASE WHEN candidates.off IS NULL THEN 'unplaced'
               WHEN candidates.off >= COALESCE(floors.any_floor, 0) THEN 'tail'
               WHEN candidates.off > COALESCE(visible_ends.last_off, -1) THEN 'tail'
               WHEN candidates.off < visible_ends.first_off THEN 'prefix' ELSE 'middle' END)
         || (CASE WHEN candidates.copies > 0 THEN ', on some replicas' ELSE '' END) END AS sub_kind,
  candidates.p, candidates.off, candidates.invoke_ns AS at_ns, candidates.complete_ns AS until_ns,
  candidates.value_id, candidates.client, candidates.session, candidates.op, candidates.acks,
  candidates.outcome, candidates.node, candidates.n_reads, candidates.copies, candidates.log_slots,
  candidates.unclean_on, candidates.final_leader, COALESCE(floors.any_floor, 0) AS any_floor,
  {UNCLEAN_FLOOR.format("candidates")} AS unclean_floor, floors.lost_floor, candidates.flushed_ns,
  candidates.low_off, candidates.high_off
FROM (SELECT records.*, unplaced.low_off, unplaced.high_off,
        COALESCE(CASE WHEN partitions.has_log = 0
          THEN records.read_slot % {SLOT} END, records.ack_off, records.read_slot % {SLOT},
          records.first_slot % {SLOT})
          AS off, partitions.unclean_on,
        partitions.has_log, partitions.final_leader, partitions.log_start,
        partitions.unclean_floor AS least_floor, partitions.losses_ns, partitions.flushed_ns
        {_SUSPECTS}
        AND ((partitions.has_log = 1 AND records.log_slots = 0)
             OR (partitions.has_log = 1 AND records.unserved = 1)
             OR (partitions.has_log = 0 AND records.seen_slots = 0 AND {OWED}))) candidates
LEFT JOIN (SELECT p, MIN(off) AS first_off, MAX(off) AS last_off FROM slots
           WHERE visible = 1 GROUP BY p) visible_ends ON visible_ends.p = candidates.p
LEFT JOIN floors ON floors.p = candidates.p AND candidates.invoke_ns >= floors.from_ns
  AND candidates.invoke_ns < floors.to_ns
LEFT JOIN (SELECT ticks.p, MIN(ticks.last_ns) AS reached_ns FROM ticks JOIN partitions
             ON partitions.p = ticks.p
           WHERE ticks.last_off >= partitions.log_start GROUP BY ticks.p) log_ticks
             ON log_ticks.p = candidates.p
WHERE candidates.off >= candidates.log_start
  OR (candidates.off IS NULL
      AND (candidates.log_start = 0 OR candidates.invoke_ns > log_ticks.reached_ns))
"""

_OFF = f"COALESCE(violation.off, {NO_OFFSET - 1})"
LOSABLE = only_where("violation.log_slots = 0", losable(_OFF))
"""A record of unknown offset may have been anywhere: any election after its send excuses it."""

_UNFLUSHED = """violation.acks <> -1 OR violation.outcome <> 'ok'
  OR violation.until_ns >= COALESCE(violation.flushed_ns, 0)"""
"""Whether a disk may have lost the record. A record that all in-sync replicas acknowledged is
flushed after `flush.ms`."""


def _explain(row: Mapping[str, Any]) -> str:
    acked = row["outcome"] == "ok" and (row["final_leader"] is not None or not row["n_reads"])
    event = "was acknowledged" if acked else "was read"
    if row["sub_kind"] == "not served":
        return (
            f"{row['value_id']} {event} at {place(row)} and lies in the final leader's log, but a "
            "complete final pass over that offset did not deliver it."
        )
    if row["final_leader"] is None and row["high_off"] is not None:
        low = "its begin" if row["low_off"] is None else f"offset {row['low_off']}"
        return (
            f"{row['value_id']} ({acks(row)}) was appended to {place(row)} without a known offset, "
            f"between {low} and offset {row['high_off']}, but complete final passes over all of "
            "that did not deliver it."
        )
    if row["final_leader"] is None:
        return (
            f"{row['value_id']} ({acks(row)}) {event} at {place(row)}, but no complete final "
            "pass over that offset delivered it."
        )
    others = count_text(row["copies"] or 0, "other replica")
    held = f"{others} still {'has' if row['copies'] == 1 else 'have'} it"
    return (
        f"{row['value_id']} ({acks(row)}) {event} at {place(row)}, but is missing from the "
        f"log of broker {row['final_leader']}, the final leader; "
        f"{held if row['copies'] else 'no replica still has it'}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A record that was acknowledged, or read and not rejected, is in the final leader's log, and
    every final pass over it delivered it.

    Left out: where in the log a lost record was, and lost records of unknown offset.
    """
    for partition in history.partitions:
        for send in () if partition.is_compacted else partition.sends:
            value, reads = send.value_id, history.reads_of[send.value_id]
            records, offset = history.records_of[value], acknowledged_offset(send)
            if offset is None and (reads or records):
                offset = (reads or records)[0].offset
            is_due = send.outcome == "ok" or (send.outcome == "info" and reads)
            if not is_due or offset is None or offset < partition.start:
                continue
            if not records:
                yield partition.violation(None, offset, value)
            elif any(
                not final_pass.has_delivered(record.offset, value)
                for record in records
                for final_pass in history.partition_at[record.topic, record.partition].owing_passes(
                    record.offset, value
                )
            ):
                yield partition.violation("not served", offset, value)


GUARANTEE = Guarantee(
    name="lost_write",
    rank=10,
    about="an acknowledged record is missing at the end",
    promise="A message will not be lost as long as at least one in-sync replica remains alive "
    "once it is committed, and acks=all acknowledges committed messages only.",
    source="Kafka documentation, 4.6 Message Delivery Semantics, 4.7 Replication",
    sub_kinds={
        "prefix": "before every record that the log still shows",
        "middle": "between records that the log still shows",
        "tail": "behind the last record that the log shows, or where a later leader epoch began",
        "unplaced": "acknowledged without an offset",
        "not served": "in the final leader's log, but not in a complete final pass over its offset",
    },
    details=(
        "Judged are acknowledged records, and records of unknown outcome that a consumer read.",
        "A record must be in the final leader's log, and in every complete final pass over its "
        "offset.",
        "Without logs, an acknowledgement without an offset is judged where final passes covered "
        "all offsets between the records before and after it.",
        "If the last leader is not a replica any more and left no log, the longest log of the "
        "replicas counts as the final leader's.",
        "`, on some replicas` is added where another replica still has the record.",
        "What disks lost is permitted, but not records that all in-sync replicas acknowledged so "
        "long before that `flush.ms` had brought them to every disk. That time includes the "
        "brokers' `log.flush.scheduler.interval.ms`, `log.flush.offset.checkpoint.interval.ms` "
        "and `log.initial.task.delay.ms`, and three seconds. It counts where every replica lost "
        "its end once, and the ISR did not change meanwhile.",
    ),
    not_counted=(
        "Records of compacted topics.",
        "Offsets below the log start, and acknowledgements without an offset that may have been "
        "there: the log has no record that was acknowledged before their send.",
        "Unknown sends that no consumer read.",
    ),
    unused_evidence=(
        "Copies that an application made of an unread send of unknown outcome: the offset "
        "of the send is unknown, and so is whether retention may have deleted it.",
    ),
    opportunities=count_records(JUDGED),
    violations=LOST,
    excuses=(
        *LOSABLE[:-1],
        LOSABLE[-1].only_where(f"({_UNFLUSHED})"),
    ),
    explain=_explain,
    excused_by_times=True,
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
        *("partitions.flushed_ns", "partitions.losses_ns"),
    ),
    reference=_reference,
    reference_covers=("prefix", "middle", "tail", "not served"),
)
