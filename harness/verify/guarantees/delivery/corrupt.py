"""A record is read with the checksum and the timestamp with which it was sent.

Timestamps that brokers set themselves are left out. Where no fault damaged a disk, no reader
gets a batch whose own CRC is wrong. A batch beyond its topic's limits of size or timestamp is
never appended.

The size is that of the batch in the final leader's log; batches that the cleaner rewrites are
left out. A timestamp is compared with the begin and the end of its acknowledged send, with ten
minutes of tolerance for clocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from urteil.harness.verify.guarantees.base import Excuse, Guarantee, place
from urteil.harness.verify.guarantees.delivery.misplaced_ack import TIMED
from urteil.harness.verify.reference import Row, SmallHistory, Violation

_RETIMED = f"""
(SELECT o.value_id, o.p, o.off, MIN(o.read_ns) AS read_ns, SUM(o.served) AS served,
   SUM(1 - o.served) AS stored, o.foreign_on
 FROM (SELECT v.value_id, q.p, e.off, e.read_ns, e.served, q.foreign_on, e.timestamp_ms, e.intact,
         CASE WHEN v.outcome = 'ok' AND v.attempts > 1
           THEN MAX(CASE WHEN e.served = 0 THEN e.timestamp_ms END) OVER (PARTITION BY v.value_id)
           ELSE v.timestamp_ms END AS sent_ms
       FROM (SELECT r.value_id, r.topic_id, r.partition, r.offset AS off, r.timestamp_ms, r.intact,
               r.read_ns, 1 AS served, CAST(NULL AS INT) AS broker FROM reads r
             UNION ALL
             SELECT l.value_id, l.topic_id, l.partition, l.offset, l.timestamp_ms, l.intact,
               CAST(NULL AS BIGINT), 0, l.broker FROM replicas l) e
       JOIN irregular_values v ON v.value_id = e.value_id AND v.rekeyed = 1
       JOIN parts q ON q.topic_id = e.topic_id AND q.partition = e.partition AND q.sent_times = 1
       WHERE (e.served = 1 OR e.broker = q.final_leader)
         AND v.client NOT IN (SELECT c.client FROM clients c WHERE c.library = 'verifiable')) o
 WHERE o.timestamp_ms <> o.sent_ms AND COALESCE(o.intact, TRUE)
   AND o.value_id NOT IN (SELECT a.value_id FROM ({TIMED}) a)
   AND (SELECT COUNT(*) FROM irregular_values w WHERE w.rekeyed = 1) * 2
     < (SELECT COUNT(*) FROM sends)
 GROUP BY o.value_id, o.p, o.off, o.foreign_on)
"""
"""Reads and records of the final leader with another timestamp than their send's; `intact` does not
cover timestamps. The acknowledgement of a duplicate carries the timestamp of its batch, which
clients take for the record's: then the log's counts. Kafka's own tools do not report the timestamps
that they send. Where most records have another timestamp than their sends, the sends' timestamps
mean something else."""

_SLACK_MS = 600_000

_TOO_LARGE = """
(SELECT q.p, r.batch_base AS off, MIN(r.value_id) AS value_id, MAX(r.batch_bytes) AS size,
   q.max_bytes
 FROM replicas r JOIN parts q ON q.topic_id = r.topic_id AND q.partition = r.partition
 WHERE r.broker = q.final_leader AND q.compacted = 0 AND q.max_bytes IS NOT NULL
   AND r.batch_bytes > q.max_bytes
 GROUP BY q.p, r.batch_base, q.max_bytes)
"""
_BEYOND = f"""
(SELECT v.sent_p AS p, v.ack_off AS off, v.invoke_ns, v.complete_ns, v.value_id, v.timestamp_ms,
   CASE WHEN v.timestamp_ms < (v.invoke_ns + c.wall_ns) DIV 1000000 - q.past_ms - {_SLACK_MS}
     THEN q.past_ms END AS past_ms,
   CASE WHEN v.timestamp_ms > (v.complete_ns + c.wall_ns) DIV 1000000 + q.future_ms + {_SLACK_MS}
     THEN q.future_ms END AS future_ms
 FROM vals v JOIN parts q ON q.p = v.sent_p CROSS JOIN settings c
 WHERE v.sent = 1 AND v.outcome = 'ok' AND v.timestamp_ms >= 0 AND q.sent_times = 1
   AND q.clock_moved = 0 AND (q.past_ms IS NOT NULL OR q.future_ms IS NOT NULL))
"""
"""Acknowledged sends whose time was too far away, by which limit; -1 is none, and always taken."""

_BATCHES = """
(SELECT q.p, e.position_before AS off, MIN(e.invoke_ns) AS at_ns, MAX(e.complete_ns) AS until_ns,
   e.client, (SELECT COUNT(*) FROM faults f WHERE f.harm IS NOT NULL) AS hurt
 FROM polls e JOIN parts q ON q.topic_id = e.topic_id AND q.partition = e.partition
 WHERE e.error = 'CorruptRecordError' GROUP BY q.p, e.position_before, e.client)
"""
"""Where readers were given a batch that they refused for its CRC."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "batch":
        return (
            f"{row['client']}, which stood at {place(row)}, was given a batch there whose CRC-32C "
            "is not that of its content."
        )
    if row["bound"] is not None:
        what = {"too large": f"a batch of {row['told']} bytes"}.get(
            row["sub_kind"], f"a time of {row['told']}"
        )
        return (
            f"{place(row)} ({row['value_id'] or 'unreadable'}) was taken, though {what} is beyond "
            f"the topic's limit of {row['bound']}."
        )
    return (
        f"{place(row)} ({row['value_id'] or 'unreadable'}) fails its checksum, or has another "
        f"time: in {row['broken_read']} reads and in {row['broken_disk']} replicas' logs."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A record that a reader received, or that lies on a disk, has the checksum and the time that
    it was sent with.

    Left out: batches, and limits of sizes and times.
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
    """Whether a record has another time than its send.

    After several attempts the log's time counts: the acknowledgement of a duplicate has the time of
    its batch. If all that was seen agrees on another time, the acknowledgement is wrong
    (`misplaced_ack`).
    """
    send = history.sends_by_value.get(row.value_id)
    if send is None or row.intact is False:
        return False
    seen = history.reads_of[row.value_id] + history.copies_of[row.value_id]
    sent_ms = send.timestamp_ms
    if send.outcome == "ok" and (send.attempts or 0) > 1:
        records = history.records_of[row.value_id]
        sent_ms = max((record.timestamp_ms for record in records), default=None)
    is_agreed = len({one.timestamp_ms for one in seen}) == 1 and all(one.intact for one in seen)
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
    opportunities="SELECT COALESCE(SUM(s.n_reads + s.copies), 0) AS n FROM slots s "
    "JOIN parts q ON q.p = s.p WHERE q.checksums_known = 1",
    violations=f"""
SELECT CASE WHEN s.broken_read > 0 THEN 'served' ELSE 'on disk' END AS sub_kind, s.p, s.off,
  s.read_ns AS at_ns, s.read_ns AS until_ns, s.value_id, s.broken_read, s.broken_disk,
  q.foreign_on, CAST(NULL AS BIGINT) AS told, CAST(NULL AS BIGINT) AS bound,
  CAST(NULL AS STRING) AS client, 0 AS hurt
FROM slots s JOIN parts q ON q.p = s.p WHERE s.broken_read > 0 OR s.broken_disk > 0
UNION ALL
SELECT CASE WHEN t.served > 0 THEN 'served' ELSE 'on disk' END, t.p, t.off, t.read_ns, t.read_ns,
  t.value_id, t.served, t.stored, t.foreign_on, NULL, NULL, NULL, 0
FROM {_RETIMED} t
UNION ALL
SELECT 'too large', z.p, z.off, NULL, NULL, z.value_id, 0, 0, 0, z.size, z.max_bytes, NULL, 0
FROM {_TOO_LARGE} z
UNION ALL
SELECT CASE WHEN b.past_ms IS NULL THEN 'too new' ELSE 'too old' END, b.p, b.off, b.invoke_ns,
  b.complete_ns, b.value_id, 0, 0, 0, b.timestamp_ms, COALESCE(b.past_ms, b.future_ms), NULL, 0
FROM {_BEYOND} b WHERE b.past_ms IS NOT NULL OR b.future_ms IS NOT NULL
UNION ALL
SELECT 'batch', d.p, d.off, d.at_ns, d.until_ns, NULL, 0, 0, 0, NULL, NULL, d.client, d.hurt
FROM {_BATCHES} d""",
    excuses=(
        Excuse(
            when="x.hurt > 0",
            reason="a fault damaged a disk, and brokers do not check what they read",
            reads=("faults",),
        ),
        Excuse(
            when="x.sub_kind <> 'batch' AND x.value_id IS NULL AND x.foreign_on = 1",
            reason="others write to this topic: a record that names no send of this run may be "
            "theirs",
        ),
    ),
    explain=_explain,
    tie="j.value_id, j.client",
    needs=(),
    reads=(
        *("slots", "vals", "irregular_values", "parts", "settings", "clients", "sends", "reads"),
        *("polls", "replicas", "parts.clock_moved", "parts.future_ms", "parts.max_bytes"),
        *("parts.past_ms", "parts.sent_times"),
    ),
    rests_on=("sends", "reads", "replicas", "polls", "faults"),
    reference=_reference,
    reference_covers=("served", "on disk"),
)
