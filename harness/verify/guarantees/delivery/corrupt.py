"""A record is read with the checksum and the timestamp with which it was sent.

Timestamps that brokers set themselves are left out. If no fault damaged a disk, no reader receives
a batch with a wrong CRC. A batch beyond its topic's limits of size or timestamp is never appended.

The size is that of the batch in the final leader's log; batches that the cleaner rewrites are left
out. A timestamp is compared with the begin and the end of its acknowledged send, with ten minutes
of tolerance for clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from urteil.harness.verify.guarantees.base import Excuse, Guarantee, place
from urteil.harness.verify.guarantees.delivery.misplaced_ack import TIMED
from urteil.harness.verify.reference import Row, SmallHistory, Violation

_RETIMED = f"""
(SELECT observations.value_id, observations.p, observations.off,
   MIN(observations.read_ns) AS read_ns, SUM(observations.served) AS served,
   SUM(1 - observations.served) AS stored, observations.foreign_permitted
 FROM (SELECT records.value_id, partitions.p, copies.off, copies.read_ns, copies.served,
         partitions.foreign_permitted, copies.timestamp_ms, copies.intact,
         CASE WHEN records.outcome = 'ok' AND records.attempts > 1
           THEN MAX(CASE WHEN copies.served = 0
                         THEN copies.timestamp_ms END) OVER (PARTITION BY records.value_id)
           ELSE records.timestamp_ms END AS sent_ms
       FROM (SELECT reads.value_id, reads.topic_id, reads.partition, reads.offset AS off,
               reads.timestamp_ms, reads.intact,
               reads.read_ns, 1 AS served, CAST(NULL AS INT) AS broker FROM reads
             UNION ALL
             SELECT replicas.value_id, replicas.topic_id, replicas.partition, replicas.offset,
               replicas.timestamp_ms, replicas.intact,
               CAST(NULL AS BIGINT), 0, replicas.broker FROM replicas) copies
       JOIN irregular_values records ON records.value_id = copies.value_id AND records.rekeyed = 1
       JOIN partitions ON partitions.topic_id = copies.topic_id
         AND partitions.partition = copies.partition AND partitions.sent_times = 1
       WHERE (copies.served = 1 OR copies.broker = partitions.final_leader)
         AND records.client NOT IN (SELECT client FROM clients
                                      WHERE library = 'verifiable')) observations
 WHERE observations.timestamp_ms <> observations.sent_ms AND COALESCE(observations.intact, TRUE)
   AND observations.value_id NOT IN (SELECT value_id FROM ({TIMED}) timed_copies)
   AND (SELECT COUNT(*) FROM irregular_values WHERE rekeyed = 1) * 2
     < (SELECT COUNT(*) FROM sends)
 GROUP BY observations.value_id, observations.p, observations.off, observations.foreign_permitted)
"""
"""Reads and records of the final leader with another timestamp than their send's; `intact` does not
cover timestamps. The acknowledgement of a duplicate carries the timestamp of its batch, and clients
report that as the record's: then the log's timestamp counts. Kafka's command-line tools do not
report the timestamps that they send. If most records have another timestamp than their sends, the
sends' timestamps mean something else."""

_SLACK_MS = 600_000

_TOO_LARGE = """
(SELECT partitions.p, replicas.batch_base AS off, MIN(replicas.value_id) AS value_id,
   MAX(replicas.batch_bytes) AS size,
   partitions.max_bytes
 FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
   AND partitions.partition = replicas.partition
 WHERE replicas.broker = partitions.final_leader AND partitions.compacted = 0
   AND partitions.max_bytes IS NOT NULL AND replicas.batch_bytes > partitions.max_bytes
 GROUP BY partitions.p, replicas.batch_base, partitions.max_bytes)
"""
_BEYOND = f"""
(SELECT records.sent_p AS p, records.ack_off AS off, records.invoke_ns, records.complete_ns,
   records.value_id, records.timestamp_ms,
   CASE WHEN records.timestamp_ms < (records.invoke_ns + settings.wall_ns) DIV 1000000
        - partitions.past_ms - {_SLACK_MS}
     THEN partitions.past_ms END AS past_ms,
   CASE WHEN records.timestamp_ms > (records.complete_ns + settings.wall_ns) DIV 1000000
        + partitions.future_ms + {_SLACK_MS}
     THEN partitions.future_ms END AS future_ms
 FROM records JOIN partitions ON partitions.p = records.sent_p CROSS JOIN settings
 WHERE records.sent = 1 AND records.outcome = 'ok' AND records.timestamp_ms >= 0
   AND partitions.sent_times = 1
   AND partitions.clock_moved = 0
   AND (partitions.past_ms IS NOT NULL OR partitions.future_ms IS NOT NULL))
"""
"""Acknowledged sends whose timestamp exceeds a limit, with that limit. Timestamp -1 means none and
is always accepted."""

_BATCHES = """
(SELECT partitions.p, polls.position_before AS off, MIN(polls.invoke_ns) AS at_ns,
   MAX(polls.complete_ns) AS until_ns,
   polls.client, (SELECT COUNT(*) FROM faults WHERE harm IS NOT NULL) AS hurt
 FROM polls JOIN partitions ON partitions.topic_id = polls.topic_id
   AND partitions.partition = polls.partition
 WHERE polls.error = 'CorruptRecordError' GROUP BY partitions.p, polls.position_before,
   polls.client)
"""
"""Batches that readers rejected for their CRC."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "batch":
        return (
            f"{row['client']} received a batch at its position {place(row)} whose CRC-32C is not "
            "that of its content."
        )
    if row["bound"] is not None:
        what = {"too large": f"a batch of {row['told']} bytes"}.get(
            row["sub_kind"], f"a time of {row['told']}"
        )
        return (
            f"{place(row)} ({row['value_id'] or 'unreadable'}) was accepted, though {what} exceeds "
            f"the topic's limit of {row['bound']}."
        )
    return (
        f"{place(row)} ({row['value_id'] or 'unreadable'}) fails its checksum, or has another "
        f"time: in {row['broken_read']} reads and in {row['broken_disk']} replicas' logs."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A record that a reader received, or that is on a disk, has the checksum and the timestamp
    with which it was sent.

    Left out: batches, and limits of sizes and timestamps.
    """
    for partition in history.partitions:
        reads = partition.reads
        broken = (_slots(reads, _is_broken), _slots(partition.replicas, _is_broken))
        retimed = partial(_is_retimed, history)
        for served, stored in (broken, (_slots(reads, retimed), _slots(partition.log, retimed))):
            for slot in served | stored:
                yield partition.violation("served" if slot in served else "on disk", *slot)


def _slots(rows: Iterable[Row], is_wrong: Callable[[Row], bool]) -> set[tuple[int, str | None]]:
    return {(row.offset, row.value_id) for row in rows if is_wrong(row)}


def _is_broken(row: Row) -> bool:
    return row.intact is False


def _is_retimed(history: SmallHistory, row: Row) -> bool:
    """Whether a record has another timestamp than its send.

    After several attempts the log's timestamp counts: the acknowledgement of a duplicate has the
    timestamp of its batch. If all reads and logs agree on another timestamp, the acknowledgement is
    wrong (`misplaced_ack`).
    """
    send = history.sends_by_value.get(row.value_id)
    if send is None or row.intact is False:
        return False
    seen = history.reads_of[row.value_id] + history.copies_of[row.value_id]
    sent_ms = send.timestamp_ms
    if send.outcome == "ok" and (send.attempts or 0) > 1:
        records = history.records_of[row.value_id]
        sent_ms = max((record.timestamp_ms for record in records), default=None)
    is_agreed = len({read.timestamp_ms for read in seen}) == 1 and all(read.intact for read in seen)
    if send.outcome == "ok" and send.attempts == 1 and is_agreed:
        return False
    return sent_ms is not None and bool(row.timestamp_ms != sent_ms)


GUARANTEE = Guarantee(
    name="corrupt",
    rank=50,
    about="a record is not as it was sent, by checksum or timestamp, or exceeds its topic's limits",
    promise="Record batches carry a CRC-32C over their content, which the broker checks before it "
    "appends and the consumer when it reads; max.message.bytes is the largest batch size allowed, "
    "and a message is rejected whose timestamp is further from the broker's than "
    "message.timestamp.before.max.ms or message.timestamp.after.max.ms.",
    source="Kafka documentation, 5.3 Message Format: Record Batch; 3.2 Topic Configs; KIP-98; "
    "KIP-937",
    sub_kinds={
        "served": "a reader received another checksum or timestamp than was sent",
        "on disk": "a replica's log holds another checksum or timestamp than was sent",
        "batch": "a reader rejected a batch for its own CRC",
        "too large": "a batch in the final leader's log is larger than `max.message.bytes`",
        "too old": "an accepted timestamp lies before message.timestamp.before.max.ms",
        "too new": "an accepted timestamp lies beyond message.timestamp.after.max.ms",
    },
    details=(
        "`served` and `on disk`: a checksum over value, key and headers is wrong, or the record's "
        "time is not the one it was sent with, in a read or in a log. The recorder's own check "
        "and the send's row decide.",
        "`too old`, `too new`: the time of an acknowledged record is further from its send than "
        "`message.timestamp.before.max.ms` or `message.timestamp.after.max.ms`, with ten minutes "
        "to spare.",
    ),
    not_counted=(
        "Limits that the scenario does not set, or that an administrator changed.",
        "Batches of compacted topics, and with clock faults the limits of times.",
        "Times of topics with LogAppendTime, and of topics whose `message.timestamp.type` an "
        "administrator changed.",
        "Times of Kafka's own tools, which do not report them, and of evidence in which most "
        "sends have another time than their records.",
        "`batch` where a fault damaged a disk: brokers do not check what they read (permitted).",
    ),
    opportunities="SELECT COALESCE(SUM(slots.n_reads + slots.copies), 0) AS n FROM slots "
    "JOIN partitions ON partitions.p = slots.p WHERE partitions.checksums_known = 1",
    violations=f"""
SELECT CASE WHEN slots.broken_read > 0 THEN 'served' ELSE 'on disk' END AS sub_kind, slots.p,
  slots.off, slots.read_ns AS at_ns, slots.read_ns AS until_ns, slots.value_id, slots.broken_read,
  slots.broken_disk, partitions.foreign_permitted, CAST(NULL AS BIGINT) AS told,
  CAST(NULL AS BIGINT) AS bound, CAST(NULL AS STRING) AS client, 0 AS hurt
FROM slots JOIN partitions ON partitions.p = slots.p WHERE slots.broken_read > 0
  OR slots.broken_disk > 0
UNION ALL
SELECT CASE WHEN served > 0 THEN 'served' ELSE 'on disk' END, p, off, read_ns, read_ns,
  value_id, served, stored, foreign_permitted, NULL, NULL, NULL, 0
FROM {_RETIMED} retimed_records
UNION ALL
SELECT 'too large', p, off, NULL, NULL, value_id, 0, 0, 0, size, max_bytes, NULL, 0
FROM {_TOO_LARGE} oversized_batches
UNION ALL
SELECT CASE WHEN untimely_records.past_ms IS NULL THEN 'too new' ELSE 'too old' END,
  untimely_records.p, untimely_records.off, untimely_records.invoke_ns,
  untimely_records.complete_ns, untimely_records.value_id, 0, 0, 0, untimely_records.timestamp_ms,
  COALESCE(untimely_records.past_ms, untimely_records.future_ms), NULL, 0
FROM {_BEYOND} untimely_records WHERE untimely_records.past_ms IS NOT NULL
  OR untimely_records.future_ms IS NOT NULL
UNION ALL
SELECT 'batch', p, off, at_ns, until_ns, NULL, 0, 0, 0, NULL, NULL, client, hurt
FROM {_BATCHES} broken_batches""",
    excuses=(
        Excuse(
            when="violation.hurt > 0",
            reason="a fault damaged a disk, and brokers do not check what they read",
            reads=("faults",),
        ),
        Excuse(
            when="violation.sub_kind <> 'batch' AND violation.value_id IS NULL "
            "AND violation.foreign_permitted = 1",
            reason="others write to this topic: a record that names no send of this run may be "
            "theirs",
        ),
    ),
    explain=_explain,
    tie="finding.value_id, finding.client",
    needs=(),
    reads=(
        *("slots", "records", "irregular_values", "partitions"),
        *("settings", "clients", "sends", "reads"),
        *("polls", "replicas", "partitions.clock_moved"),
        *("partitions.future_ms", "partitions.max_bytes"),
        *("partitions.past_ms", "partitions.sent_times"),
    ),
    rests_on=("sends", "reads", "replicas", "polls", "faults"),
    reference=_reference,
    reference_covers=("served", "on disk"),
)
