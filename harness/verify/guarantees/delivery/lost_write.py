"""An acknowledged record is in the final log.

A record is lost if it is missing from the final leader's log, or if a complete final pass over
its offset did not return it.

Not judged: compacted topics (see latest_value_lost), offsets below the log start, and
acknowledgements without an offset for records that may have been deleted (not sent after a
record that the log begins with or holds) and for unknown sends that no consumer read.

Losses caused by disks are permitted, but not of records acknowledged so long before that
`flush.ms` had brought them to every disk (`flushed_ns`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, acks, numbered, only_where, place
from urteil.harness.verify.guarantees.losses import losable
from urteil.harness.verify.limits import NO_OFFSET, OF_COMMIT, OWED
from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset

JUDGED = """
FROM vals v JOIN parts q ON v.sent_p = q.p
WHERE v.sent = 1 AND q.compacted = 0 AND (q.has_log = 1 OR v.asked = 1)
  AND (v.outcome = 'ok' OR (v.outcome <> 'fail' AND v.n_reads > 0))
"""

UNCLEAN_FLOOR = """CASE WHEN COALESCE({0}.node, -2) <> f.leader AND {0}.invoke_ns < {0}.spoilt_ns
  THEN {0}.least_floor ELSE COALESCE(f.unclean_floor, 0) END"""
"""From where on an unclean election may have taken a send: one that began after it, or a former one
of which the broker that answered had not heard."""

_ODD = f"""
FROM irregular_values v JOIN parts q ON v.sent_p = q.p {OF_COMMIT}
LEFT JOIN unplaced u ON u.value_id = v.value_id AND u.passed = 1
WHERE v.sent = 1 AND q.compacted = 0
  AND (u.passed = 1 OR (q.has_log = 1 OR v.read_asked = 1 OR v.asked = 1 AND v.n_reads = 0)
    AND (v.outcome = 'ok' OR (v.outcome <> 'fail' AND v.n_reads > 0)))
"""

LOST = f"""
SELECT CASE WHEN l.log_slots > 0 AND l.has_log = 1 THEN 'not served'
    ELSE (CASE WHEN l.off IS NULL THEN 'unplaced'
               WHEN l.off >= COALESCE(f.any_floor, 0) THEN 'tail'
               WHEN l.off > COALESCE(e.last_off, -1) THEN 'tail'
               WHEN l.off < e.first_off THEN 'prefix' ELSE 'middle' END)
         || (CASE WHEN l.copies > 0 THEN ', on some replicas' ELSE '' END) END AS sub_kind,
  l.p, l.off, l.invoke_ns AS at_ns, l.complete_ns AS until_ns, l.value_id, l.client, l.session,
  l.op, l.acks, l.outcome, l.node, l.n_reads, l.copies, l.log_slots, l.unclean_on, l.final_leader,
  COALESCE(f.any_floor, 0) AS any_floor, {UNCLEAN_FLOOR.format("l")} AS unclean_floor, f.lost_floor,
  l.flushed_ns, l.low_off, l.high_off
FROM (SELECT v.*, u.low_off, u.high_off, COALESCE(CASE WHEN q.has_log = 0
          THEN v.read_slot % {SLOT} END, v.ack_off, v.read_slot % {SLOT}, v.first_slot % {SLOT})
          AS off, q.unclean_on,
        q.has_log, q.final_leader, q.log_start, q.unclean_floor AS least_floor, q.spoilt_ns,
        q.flushed_ns
        {_ODD}
        AND ((q.has_log = 1 AND v.log_slots = 0) OR (q.has_log = 1 AND v.unserved = 1)
             OR (q.has_log = 0 AND v.seen_slots = 0 AND {OWED}))) l
LEFT JOIN (SELECT s.p, MIN(s.off) AS first_off, MAX(s.off) AS last_off FROM slots s
           WHERE s.visible = 1 GROUP BY s.p) e ON e.p = l.p
LEFT JOIN floors f ON f.p = l.p AND l.invoke_ns >= f.from_ns AND l.invoke_ns < f.to_ns
LEFT JOIN (SELECT t.p, MIN(t.last_ns) AS reached_ns FROM ticks t JOIN parts q ON q.p = t.p
           WHERE t.last_off >= q.log_start GROUP BY t.p) k ON k.p = l.p
WHERE l.off >= l.log_start OR (l.off IS NULL AND (l.log_start = 0 OR l.invoke_ns > k.reached_ns))
"""

_OFF = f"COALESCE(x.off, {NO_OFFSET - 1})"
LOSABLE = only_where("x.log_slots = 0", losable(_OFF))
"""A record of unknown offset may have been anywhere: any election after its send excuses it."""

_UNFLUSHED = """x.acks <> -1 OR x.outcome <> 'ok'
  OR x.until_ns >= COALESCE(x.flushed_ns, 0)"""
"""Whether a disk may have lost it: acknowledged by all in sync, it was flushed by `flush.ms`."""


def _explain(row: Mapping[str, Any]) -> str:
    acked = row["outcome"] == "ok" and (row["final_leader"] is not None or not row["n_reads"])
    said = "was acknowledged" if acked else "was read"
    if row["sub_kind"] == "not served":
        return (
            f"{row['value_id']} {said} at {place(row)} and lies in the final leader's log, but a "
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
            f"{row['value_id']} ({acks(row)}) {said} at {place(row)}, but no complete final "
            "pass over that offset delivered it."
        )
    others = count_text(row["copies"] or 0, "other replica")
    held = f"{others} still {'has' if row['copies'] == 1 else 'have'} it"
    return (
        f"{row['value_id']} ({acks(row)}) {said} at {place(row)}, but is missing from the "
        f"log of broker {row['final_leader']}, which leads in the end; "
        f"{held if row['copies'] else 'no replica still has it'}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """What was acknowledged, or read and not refused, is in the final leader's log, and every final
    pass over it delivered it.

    Left out: where in the log a lost record lay, and lost records of unknown offset.
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
                not one.delivered(record.offset, value)
                for record in records
                for one in history.partition_at[record.topic, record.partition].owing(
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
        "If the last leader is no replica any more and left no log, the longest log of the "
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
    opportunities=numbered(JUDGED),
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
            "kinds",
            "ticks",
            "parts",
            "floors",
        ),
        *("parts.flushed_ns", "parts.spoilt_ns"),
    ),
    reference=_reference,
    reference_covers=("prefix", "middle", "tail", "not served"),
)
