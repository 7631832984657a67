"""After healing, all replicas hold the same records below the high watermark.

Logs that are not compacted are compared by the bytes of their batches. Compacted ones are
compared by content and leader epoch at each offset, because replicas clean independently; of
their markers, the kind is compared, and for delete.retention.ms their existence. A replica is
compared only at offsets that its own log covers.

A replica in the ISR must also reach the leader's high watermark. None of its checkpoints (high
watermark, recovery point, log start) may lie beyond its own end: a broker that trusts such a
checkpoint serves, or takes for flushed, records that do not exist yet. `behind`: its
checkpointed high watermark is not an old one, because brokers write it every five seconds and
stop cleanly at the end of a run.

A checkpoint may be older than a permitted loss. Where readers received more than the final
leader's log holds, the ends are in doubt. Where the lab could not heal, a replica may still hold
records that it would truncate, beyond the last epoch that it shares with the leader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place, union
from urteil.harness.verify.limits import SECOND_NS, STOPPING_NS, epoch_of
from urteil.harness.verify.reference import Row, SmallHistory, Violation

_JUDGED = """
FROM slots JOIN partitions ON partitions.p = slots.p LEFT JOIN shared ON shared.slot = slots.slot
WHERE slots.copies > 0 AND slots.expected > 1 AND slots.off < partitions.committed_end
  AND slots.off >= partitions.log_start AND slots.off < partitions.agreed_end
"""

_MARKERS = f"""
(SELECT partitions.p, replicas.offset AS off, COUNT(*) AS copies, MIN(replicas.control) AS low,
   MAX(replicas.control) AS high,
   MAX(CASE WHEN partitions.clock_moved = 0
            AND replicas.timestamp_ms > (partitions.ends_ns + {STOPPING_NS} + settings.wall_ns
     - partitions.delete_retention_ns) DIV 1000000 THEN 1 ELSE 0 END) AS young
 FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
   AND partitions.partition = replicas.partition
 CROSS JOIN settings
 WHERE replicas.control IS NOT NULL AND partitions.compacted = 1
   AND replicas.offset < partitions.committed_end AND replicas.offset >= partitions.log_start
   AND replicas.offset < partitions.agreed_end
 GROUP BY partitions.p, replicas.offset)
"""
"""The markers of compacted logs. No cleaner may have removed `young` ones yet."""

_CHECKPOINTED_NS = 10 * SECOND_NS
"""A checkpoint includes what was acknowledged, or healed, this long before: twice
`replica.high.watermark.checkpoint.interval.ms`."""

_ACKED = f"""
SELECT records.sent_p AS p, MAX(records.ack_off) AS off FROM records JOIN partitions
  ON partitions.p = records.sent_p
WHERE records.sent = 1 AND records.outcome = 'ok' AND records.acks = -1
  AND records.complete_ns < partitions.ends_ns - {_CHECKPOINTED_NS}
  AND partitions.calm_ns < partitions.ends_ns - {_CHECKPOINTED_NS}
GROUP BY records.sent_p
"""
"""The last offset of each partition that was acknowledged by all long before the end."""

_IN_SLOTS = f"""
SELECT differences.sub_kind, differences.p, differences.off, CAST(NULL AS BIGINT) AS at_ns,
  CAST(NULL AS BIGINT) AS until_ns, MIN(differences.value_id) AS value_id,
  MAX(differences.value_id) AS other_value_id, MAX(differences.slot_copies) AS slot_copies,
  MAX(differences.expected) AS expected
FROM (SELECT slots.p, slots.off, slots.value_id,
        COALESCE(shared.copies, slots.copies) AS slot_copies, slots.expected,
        CASE WHEN slots.copies < shared.copies THEN 'content'
          WHEN partitions.compacted = 0 AND COALESCE(shared.copies, slots.copies) < slots.expected
          THEN 'missing'
          WHEN {epoch_of("slots.ident_low")} <> {epoch_of("slots.ident_high")} THEN 'leader epoch'
          WHEN partitions.compacted = 1 THEN 'same'
          WHEN slots.ident_low <> slots.ident_high OR slots.base_low <> slots.base_high THEN 'bytes'
          ELSE 'same' END AS sub_kind {_JUDGED}) differences
WHERE differences.sub_kind <> 'same' GROUP BY differences.sub_kind, differences.p,
  differences.off"""
"""Offsets at which replicas differ, or that some of them lack."""

_IN_MARKERS = f"""
SELECT CASE WHEN markers.low <> markers.high THEN 'content' ELSE 'missing' END, markers.p,
  markers.off, NULL, NULL, NULL, NULL, markers.copies, cover.copies
FROM {_MARKERS} markers JOIN cover ON cover.p = markers.p AND markers.off >= cover.lo
  AND markers.off < cover.hi
WHERE markers.low <> markers.high OR (markers.young = 1 AND markers.copies < cover.copies)"""
"""The same for markers of compacted logs."""

_SHORT = """
SELECT 'short', logs_p.p, logs_p.log_end, NULL, NULL, NULL, NULL, logs_p.broker,
  leader_logs.high_watermark
FROM logs_p JOIN partitions ON partitions.p = logs_p.p JOIN logs_p leader_logs
  ON leader_logs.p = logs_p.p AND leader_logs.broker = partitions.final_leader
WHERE logs_p.in_isr = 1 AND logs_p.log_end < leader_logs.high_watermark AND partitions.in_run = 1"""
"""In-sync replicas that end below the leader's high watermark."""

_BEYOND_ITS_END = """
SELECT 'beyond its end', logs_p.p, logs_p.log_end, NULL, NULL, NULL, NULL, logs_p.broker,
  CASE WHEN logs_p.high_watermark > logs_p.log_end THEN logs_p.high_watermark
    WHEN logs_p.recovery_point > logs_p.log_end THEN logs_p.recovery_point ELSE logs_p.log_start END
FROM logs_p JOIN partitions ON partitions.p = logs_p.p
WHERE logs_p.in_isr = 1 AND partitions.in_run = 1 AND partitions.unclean_on = 0
  AND partitions.lost_floor IS NULL AND partitions.has_log = 1
  AND COALESCE(partitions.seen_end, 0) <= partitions.log_end
  AND (logs_p.high_watermark > logs_p.log_end OR logs_p.recovery_point > logs_p.log_end
       OR logs_p.log_start > logs_p.log_end)"""
"""In-sync replicas with a checkpoint beyond their own end."""

_BEHIND = f"""
SELECT 'behind', logs_p.p, acked_slots.off, NULL, NULL, NULL, NULL, logs_p.broker,
  logs_p.high_watermark
FROM logs_p JOIN partitions ON partitions.p = logs_p.p JOIN ({_ACKED}) acked_slots
  ON acked_slots.p = logs_p.p
WHERE logs_p.in_isr = 1 AND partitions.in_run = 1 AND partitions.unclean_on = 0
  AND partitions.lost_floor IS NULL
  AND partitions.has_log = 1 AND acked_slots.off < partitions.log_end
    AND logs_p.high_watermark <= acked_slots.off"""
"""In-sync replicas whose checkpointed high watermark is too old."""


def _explain(row: Mapping[str, Any]) -> str:
    defects = {
        "missing": f"is on {row['slot_copies']} of the {row['expected']} replicas whose logs "
        "cover it",
        "content": f"is {row['value_id'] or 'a marker of one kind'} on some replicas and another "
        "record on others",
        "leader epoch": "carries different leader epochs on different replicas",
        "bytes": "has different batches around it on different replicas",
        "short": f"is the end of a replica in the ISR; the leader's high watermark is "
        f"{row['expected']}",
        "beyond its end": f"is the end of broker {row['slot_copies']}'s log, though one of its "
        f"checkpoints says {row['expected']}",
        "behind": f"had been acknowledged by all long before, yet broker {row['slot_copies']}, "
        f"which is in the ISR, noted {row['expected']} as its high watermark when it stopped",
    }
    return f"After healing, {place(row)} {defects[row['sub_kind']]}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Below the high watermark, all logs that cover an offset hold the same record there, with the
    same leader epoch and in the same batch. A replica in the ISR reaches the leader's high
    watermark, and none of its checkpoints is beyond its end.

    Left out: the presence of markers in compacted logs, and old checkpoints.
    """
    for partition in history.partitions:
        for offset, copies in partition.copies_at.items():
            covering = [
                log for log in partition.logs if (log.log_start or 0) <= offset < log.log_end
            ]
            if len(covering) > 1 and partition.start <= offset < partition.committed_end:
                value = min((row.value_id for row in copies if row.value_id), default=None)
                kind = _difference(copies, len(covering), is_compacted=partition.is_compacted)
                if kind is not None:
                    yield partition.violation(kind, offset, value)
        ends = [each.row.to_offset for each in partition.final_passes]
        for log in (log for log in partition.logs if log.broker in partition.final_isr):
            if log.log_end < partition.leader_log.high_watermark:
                yield partition.violation("short", log.log_end)
            is_known = max(ends, default=0) <= partition.leader_log.log_end
            checkpoints = (log.high_watermark, log.recovery_point, log.log_start)
            if is_known and any(mark is not None and mark > log.log_end for mark in checkpoints):
                yield partition.violation("beyond its end", log.log_end)


def _difference(copies: list[Row], expected: int, *, is_compacted: bool) -> str | None:
    """The first difference between the copies of one offset."""
    if len({(row.value_id, row.control if is_compacted else None) for row in copies}) > 1:
        return "content"
    if len(copies) < expected and not is_compacted:
        return "missing"
    if len({row.leader_epoch for row in copies}) > 1:
        return "leader epoch"
    return "bytes" if not is_compacted and len({_batch(row) for row in copies}) > 1 else None


def _batch(row: Row) -> tuple[object, ...]:
    """The fields of a record and of its batch that must be equal on all replicas."""
    numbers = (row.producer_id, row.producer_epoch, row.sequence)
    known = [-1 if number is None else number for number in numbers]
    batch = (row.batch_base, row.batch_crc, row.batch_bytes, row.timestamp_ms)
    return (*batch, *known, bool(row.transactional), row.control)


GUARANTEE = Guarantee(
    name="replica_divergence",
    rank=30,
    about="replicas of one partition differ below the high watermark",
    promise="The logs on the followers are identical to the leader's log: all have the same "
    "offsets and messages in the same order, up to what is not yet replicated.",
    source="Kafka documentation, 4.7 Replication; KIP-101, KIP-279",
    sub_kinds={
        "content": "replicas hold different records at one offset",
        "missing": "a replica whose log covers the offset lacks the record",
        "leader epoch": "replicas hold the record with different leader epochs",
        "bytes": "replicas hold the record in different batches",
        "short": "a member of the ISR ends below the leader's high watermark",
        "beyond its end": "a checkpoint of the replica is beyond its log",
        "behind": (
            "the replica's checkpointed high watermark is below what all had acknowledged ten "
            "seconds before the load ended"
        ),
    },
    details=(
        "Compared below the high watermark: presence, content, leader epoch and batch bytes of "
        "each record.",
    ),
    not_counted=(
        "Offsets that a replica's log does not cover.",
        "Batch bytes of compacted topics. Their markers are compared by kind, and for "
        "`delete.retention.ms` by presence.",
        "Checkpoints where an unclean election or a disk destroyed committed records.",
        "`behind` where a fault was healed in those ten seconds.",
    ),
    opportunities=f"SELECT COUNT(*) AS n {_JUDGED}",
    violations=union(_IN_SLOTS, _IN_MARKERS, _SHORT, _BEYOND_ITS_END, _BEHIND),
    explain=_explain,
    tie="finding.value_id, finding.slot_copies",
    needs=("replicas", "logs"),
    reads=(
        *("slots", "records", "shared", "partitions", "cover", "logs_p", "settings", "replicas"),
        *("partitions.calm_ns", "partitions.clock_moved"),
        *("partitions.lost_floor", "partitions.unclean_on"),
    ),
    rests_on=("replicas", "logs", "passes", "states", "sends", "faults"),
    reference=_reference,
    reference_covers=("content", "missing", "leader epoch", "bytes", "short", "beyond its end"),
    reference_leaves_out="violation.sub_kind = 'missing' "
    "AND violation.p IN (SELECT p FROM partitions "
    "WHERE compacted = 1)",
)
