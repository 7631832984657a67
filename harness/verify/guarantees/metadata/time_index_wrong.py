"""A lookup by timestamp finds the first record that is not older, and the largest timestamp a
record that has it.

Each response carries that record's own timestamp and leader epoch. With LogAppendTime, timestamps
never decrease.

ListOffsets responses are compared with the final leader's log. Offsets below its start are left
out, and so are records cleaned since. Replicas clean independently, so in a compacted topic a
leader must return only records that all replicas still hold.

`none` requires a record acknowledged before the request, a response from the leader, and a log from
which neither an administrator nor retention deleted records: Apache Kafka may search only a segment
below the log start, which has no record left. The largest timestamp is compared with the records
before the response, and with records acknowledged before the request that still exist: none may be
newer. An empty response is not a violation, since the newest record may not be committed yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import END_AFTER_WATERMARK
from urteil.harness.verify.guarantees.base import SLOT, Guarantee, place
from urteil.harness.verify.guarantees.losses import LOSSES
from urteil.harness.verify.reference import Partition, Row, SmallHistory, Violation

_TIME_LOOKUPS = """
FROM answers JOIN partitions ON partitions.p = answers.p
WHERE answers.kind = 'time' AND answers.requested_ms IS NOT NULL AND answers.error IS NULL
  AND partitions.has_log = 1
"""

_FIRST_RECORDS = f"""
SELECT moments.p, moments.node, moments.at_ns, moments.until_ns, moments.api_version,
  moments.requested_ms, moments.told,
  MIN(moments.off) OVER (PARTITION BY moments.p ORDER BY moments.requested_ms DESC, moments.kind
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS first_off, moments.kind
FROM (SELECT answers.p, answers.node, answers.invoke_ns AS at_ns, answers.complete_ns AS until_ns,
        answers.api_version, answers.requested_ms,
        COALESCE(answers.offset, -1) AS told, CAST(NULL AS BIGINT) AS off, 1 AS kind {_TIME_LOOKUPS}
      UNION ALL
      SELECT partitions.p, NULL, NULL, NULL, NULL, MAX(replicas.timestamp_ms), NULL,
        MIN(replicas.offset), 0
      FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
        AND partitions.partition = replicas.partition
      JOIN (SELECT DISTINCT answers.p {_TIME_LOOKUPS}) requested_partitions
        ON requested_partitions.p = partitions.p
      LEFT JOIN (SELECT DISTINCT answers.p,
                   answers.requested_ms DIV 1000 AS s {_TIME_LOOKUPS}) requested_seconds
        ON requested_seconds.p = partitions.p
          AND requested_seconds.s = replicas.timestamp_ms DIV 1000
      WHERE replicas.broker = partitions.final_leader AND replicas.timestamp_ms IS NOT NULL
        AND replicas.offset >= partitions.log_start
      GROUP BY partitions.p, replicas.timestamp_ms DIV 1000,
        CASE WHEN requested_seconds.p IS NOT NULL THEN replicas.timestamp_ms END) moments
"""
"""Answers, each with the first offset of its timestamp or later. Records are reduced to one for
each timestamp in the requested seconds, and one for each other second."""

_LED = """
SELECT answers.p, answers.node, answers.invoke_ns,
  MAX(CASE WHEN spans.leader = answers.node THEN 1 ELSE 0 END) AS led
FROM answers JOIN state_spans spans
  ON spans.p = answers.p AND spans.begin_ns <= answers.complete_ns
    AND spans.end_ns > answers.invoke_ns
WHERE answers.kind IN ('time', 'max') GROUP BY answers.p, answers.node, answers.invoke_ns
"""
"""Whether the responding broker led then, by ZooKeeper: other brokers may lack acknowledged
records."""

_FOUND_RECORDS = """
FROM answers JOIN partitions ON partitions.p = answers.p
JOIN replicas ON replicas.topic_id = partitions.topic_id
  AND replicas.partition = partitions.partition AND replicas.broker = partitions.final_leader
  AND replicas.offset = answers.offset
WHERE answers.kind IN ('time', 'max') AND answers.answered_ms IS NOT NULL AND answers.error IS NULL
  AND partitions.has_log = 1 AND answers.offset >= partitions.log_start
"""
"""The records that were found, in the final leader's log."""

_OTHER_EPOCH = """(answers.leader_epoch >= 0 AND answers.leader_epoch <> replicas.leader_epoch
  AND (answers.kind = 'time' OR answers.leader_epoch < replicas.leader_epoch))"""
"""With the largest timestamp, releases before 3.8 return the leader's own epoch (KIP-734's first
form), which is never below that of the record."""

_WRONG_FIELDS = f"""
SELECT CASE WHEN {_OTHER_EPOCH} THEN 'other epoch'
    ELSE 'other time' END AS sub_kind,
  answers.p, answers.offset AS off, answers.invoke_ns AS at_ns, answers.complete_ns AS until_ns,
  replicas.value_id, answers.node, answers.answered_ms AS requested_ms,
  replicas.timestamp_ms AS told,
  CAST(answers.leader_epoch AS BIGINT) AS first_off, replicas.leader_epoch, partitions.unclean_on,
  partitions.unclean_floor, partitions.lost_floor, partitions.losses_ns
{_FOUND_RECORDS} AND ({_OTHER_EPOCH}
  OR (partitions.append_time = 0 AND answers.answered_ms <> replicas.timestamp_ms))
"""

_NEWEST = (
    "FROM answers JOIN partitions ON partitions.p = answers.p WHERE answers.kind = 'max' "
    "AND answers.offset >= 0 "
    "AND answers.answered_ms IS NOT NULL AND answers.error IS NULL AND partitions.has_log = 1 "
    "AND partitions.append_time = 0"
)

_NEWER = f"""
SELECT moments.p, moments.node, moments.at_ns, moments.until_ns, moments.off, moments.answered_ms,
  moments.kind,
  MAX(moments.ms) OVER (PARTITION BY moments.p ORDER BY {{order}}, moments.kind
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS newest_ms
FROM (SELECT answers.p, answers.node, answers.invoke_ns AS at_ns, answers.complete_ns AS until_ns,
        answers.offset AS off,
        answers.answered_ms, CAST(NULL AS BIGINT) AS ms, 0 AS kind {_NEWEST}
      UNION ALL {{records}}) moments
"""
_NEWEST_BEFORE = _NEWER.format(
    order="moments.off",
    records=f"""
      SELECT partitions.p, NULL, NULL, NULL, replicas.offset, NULL, replicas.timestamp_ms, 1
      FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
        AND partitions.partition = replicas.partition
      JOIN (SELECT DISTINCT answers.p {_NEWEST}) requested_partitions
        ON requested_partitions.p = partitions.p
      WHERE replicas.broker = partitions.final_leader AND replicas.timestamp_ms IS NOT NULL""",
)
"""Responses with the largest timestamp of the records before the returned offset."""
_NEWEST_ACKED = _NEWER.format(
    order="moments.at_ns",
    records=f"""
      SELECT records.sent_p, NULL, records.complete_ns, NULL, records.ack_off, NULL,
        records.timestamp_ms, 1
      FROM records JOIN partitions ON partitions.p = records.sent_p
        JOIN (SELECT DISTINCT answers.p {_NEWEST}) requested_partitions
        ON requested_partitions.p = records.sent_p
      WHERE records.outcome = 'ok' AND records.acks = -1 AND records.at_ack = 1
        AND records.ack_off >= partitions.max_start
        AND records.timestamp_ms IS NOT NULL AND partitions.compacted = 0""",
)
"""Answers with the largest timestamp that was acknowledged before the request, and was not lost."""


def _not_newest(candidates_sql: str) -> str:
    return f"""
SELECT 'not the newest', candidates.p, candidates.off, candidates.at_ns, candidates.until_ns,
  CAST(NULL AS STRING), candidates.node, candidates.newest_ms, candidates.answered_ms,
  CAST(NULL AS BIGINT), CAST(NULL AS INT), partitions.unclean_on, partitions.unclean_floor,
  partitions.lost_floor, partitions.losses_ns
FROM ({candidates_sql}) candidates JOIN partitions ON partitions.p = candidates.p
  LEFT JOIN ({_LED}) leaderships
  ON leaderships.p = candidates.p AND leaderships.node = candidates.node
    AND leaderships.invoke_ns = candidates.at_ns
WHERE candidates.kind = 0 AND candidates.newest_ms > candidates.answered_ms
  AND COALESCE(leaderships.led, 1) = 1"""


_APPEND_TIMES = """
FROM (SELECT partitions.p, replicas.offset AS off, replicas.value_id, replicas.leader_epoch,
        replicas.timestamp_ms,
        LAG(replicas.timestamp_ms) OVER (PARTITION BY partitions.p, replicas.leader_epoch
            ORDER BY replicas.offset) AS prev_ms
      FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
        AND partitions.partition = replicas.partition
      WHERE replicas.broker = partitions.final_leader AND partitions.append_time = 1
        AND partitions.clock_moved = 0
        AND replicas.timestamp_ms IS NOT NULL) append_times
"""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "time went back":
        return (
            f"The append time at {place(row)} is {row['requested_ms']}, below {row['first_off']} "
            "right "
            f"before it in leader epoch {row['leader_epoch']}."
        )
    if row["sub_kind"] == "not the newest":
        return (
            f"For the largest timestamp in {row['topic']}-{row['partition']} broker "
            f"{row['node']} returned offset {row['off']} of {row['told']}; there was a record "
            f"of {row['requested_ms']}."
        )
    if row["sub_kind"] in ("other epoch", "other time"):
        return (
            f"Broker {row['node']} found {place(row)} by its timestamp, and returned "
            f"{row['requested_ms']} and leader epoch {row['first_off']} for it; by the log these "
            "are "
            f"{row['told']} and {row['leader_epoch']}."
        )
    answer = "no offset" if row["told"] < 0 else f"offset {row['told']}"
    return (
        f"For timestamp {row['requested_ms']} in {row['topic']}-{row['partition']} broker "
        f"{row['node']} returned {answer}; by the log it is {row['first_off']}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A lookup by time finds the first record of the final log that is not older, with its time and
    epoch, or the newest one; append times do not fall within an epoch."""
    for partition in history.partitions:
        part = partition.part
        for answer in partition.derived_rows("answers") if part.has_log else ():
            if answer.error is not None or answer.kind not in ("time", "max"):
                continue
            subject = (answer.node, answer.invoke_ns)
            if answer.kind == "time" and answer.requested_ms is not None:
                yield from _misses(partition, answer, *subject)
            if answer.answered_ms is None:
                continue
            for record in partition.log:
                if record.offset != answer.offset or record.offset < part.log_start:
                    continue
                kind = _difference(record, answer, part)
                if kind:
                    yield partition.violation(kind, record.offset, record.value_id, *subject)
            if answer.kind == "max" and answer.offset >= 0 and not part.append_time:
                newest_ms = max(_known_times(partition, answer), default=-1)
                if newest_ms > answer.answered_ms and _may_lead(partition, answer):
                    yield partition.violation("not the newest", answer.offset, None, *subject)
        if part.append_time and not part.clock_moved:
            yield from _falls(partition)


def _falls(partition: Partition) -> Iterator[Violation]:
    """The records whose append time is below that before them in their leader epoch."""
    last: dict[int, int] = {}
    for row in partition.log:
        if row.timestamp_ms is not None:
            if row.timestamp_ms < last.get(row.leader_epoch, row.timestamp_ms):
                yield partition.violation("time went back", row.offset, row.value_id, None)
            last[row.leader_epoch] = row.timestamp_ms


def _misses(partition: Partition, answer: Row, *subject: object) -> Iterator[Violation]:
    """Whether a lookup by time returned another offset than the first record that is not older."""
    part, answered = partition.part, -1 if answer.offset is None else answer.offset
    first = min(
        (
            row.offset
            for row in partition.log
            if row.offset >= part.log_start
            and row.timestamp_ms is not None
            and row.timestamp_ms >= answer.requested_ms
        ),
        default=None,
    )
    at_answer = [row for row in partition.log if row.offset == answered]
    is_owed = first is not None and (not part.compacted or _is_on_all_logs(partition, first))
    if answered < 0:
        is_acked = any(
            send.outcome == "ok"
            and send.acks == -1
            and send.complete_ns < answer.invoke_ns
            and partition.history.records_of[send.value_id][:1]
            and partition.history.records_of[send.value_id][0].offset == first
            for send in partition.sends
        )
        is_untrimmed = part.log_start == 0 and part.cut_end is None
        knows_end = answer.api_version >= END_AFTER_WATERMARK.version
        if is_owed and is_acked and is_untrimmed and knows_end and _may_lead(partition, answer):
            yield partition.violation("none", answered, None, *subject)
    elif answered >= part.log_start:
        if first is not None and first < answered and is_owed:
            value = at_answer[0].value_id if at_answer else None
            yield partition.violation("too late", answered, value, *subject)
        if at_answer and (first is None or first > answered):
            yield partition.violation("too early", answered, at_answer[0].value_id, *subject)


def _is_on_all_logs(partition: Partition, offset: int) -> bool:
    """Whether every log over an offset has the final leader's record there."""
    logs = [log for log in partition.logs if log.log_start <= offset < log.log_end]
    led = {row.value_id for row in partition.log if row.offset == offset}
    copies = [row for row in partition.copies_at[offset] if row.value_id in led]
    return len(copies) >= len(logs)


def _may_lead(partition: Partition, answer: Row) -> bool:
    """Whether the broker led while it answered; true if ZooKeeper has no state of that time."""
    leaders = {
        reign.leader
        for reign, end_ns in partition.reigns
        if reign.at_ns <= answer.complete_ns and end_ns > answer.invoke_ns
    }
    return not leaders or answer.node in leaders


def _difference(record: Row, answer: Row, part: Row) -> str | None:
    """The field in which an answer differs from the record that it names."""
    is_other = answer.leader_epoch >= 0 and answer.leader_epoch != record.leader_epoch
    if is_other and (answer.kind == "time" or answer.leader_epoch < record.leader_epoch):
        return "other epoch"
    has_other_time = record.timestamp_ms is not None and answer.answered_ms != record.timestamp_ms
    return "other time" if has_other_time and not part.append_time else None


def _known_times(partition: Partition, answer: Row) -> Iterator[int]:
    """The timestamps that the largest one must not be below: of records before it, and of records
    acknowledged before the request that still exist."""
    part = partition.part
    for row in partition.log:
        if row.offset < answer.offset and row.timestamp_ms is not None:
            yield row.timestamp_ms
    for send in () if part.compacted else partition.sends:
        is_there = (send.offset, send.value_id) in partition.log_slots
        is_known = send.outcome == "ok" and send.acks == -1 and send.complete_ns < answer.invoke_ns
        if is_there and is_known and send.offset >= part.max_start:
            yield send.timestamp_ms


GUARANTEE = Guarantee(
    name="time_index_wrong",
    rank=40,
    about="a lookup by timestamp returned a wrong offset, or append times decreased",
    promise="ListOffsets answers the offset of the first message whose timestamp is greater than "
    "or equal to the given one, or of one with the largest, with its timestamp and leader epoch; "
    "LogAppendTime never decreases within a leader's log.",
    source="KIP-79; KIP-734; KIP-320; KIP-32",
    sub_kinds={
        "too late": "an earlier record has the requested timestamp or a later one",
        "too early": "the returned record is older than the requested timestamp",
        "none": "no offset was returned although a record is not older",
        "other epoch": "the returned leader epoch is not that of the record",
        "other time": "the returned timestamp is not that of the record",
        "not the newest": (
            "the record with the largest time is not the newest of those that were acknowledged "
            "before and still exist"
        ),
        "time went back": "with LogAppendTime, times fall within one leader epoch",
    },
    details=(
        "`too late`, `too early`, `none`: ListOffsets by time returns another offset than the "
        "final leader's log has.",
        "`other epoch`, `other time`: it returns a wrong epoch or time of the found record.",
    ),
    not_counted=(
        "Offsets below the log start, and records that were cleaned since. In compacted topics "
        "also records that a replica lacks.",
        "`none` of a broker that did not lead then, by ZooKeeper, or where the log has lost its "
        "begin to retention or an administrator (Apache Kafka searches a segment below the "
        "start).",
        "`none` of a broker before KIP-207 (2.2.0): a new leader may not know yet what is "
        "committed.",
        "With the largest timestamp an epoch above the record's: releases before 3.8 return the "
        "leader's own epoch.",
        "Topics with LogAppendTime for times and the newest record, which may be uncommitted. "
        "Clock faults for `time went back`.",
    ),
    opportunities=f"SELECT SUM(opportunities.n) AS n FROM (SELECT COUNT(*) AS n {_TIME_LOOKUPS} "
    f"UNION ALL SELECT COUNT(*) AS n {_APPEND_TIMES} WHERE append_times.prev_ms IS NOT NULL) "
    "opportunities",
    violations=f"""
SELECT CASE WHEN lookups.told < 0 THEN 'none' WHEN lookups.first_off < lookups.told THEN 'too late'
    ELSE 'too early' END AS sub_kind,
  lookups.p, lookups.told AS off, lookups.at_ns, lookups.until_ns, found_slots.value_id,
  lookups.node, lookups.requested_ms, lookups.told, lookups.first_off,
  CAST(NULL AS INT) AS leader_epoch, partitions.unclean_on, partitions.unclean_floor,
  partitions.lost_floor, partitions.losses_ns
FROM ({_FIRST_RECORDS}) lookups JOIN partitions ON partitions.p = lookups.p
LEFT JOIN (SELECT slot, value_id FROM slots WHERE on_leader = 1) found_slots
  ON found_slots.slot = lookups.p * {SLOT} + lookups.told AND lookups.told >= 0
LEFT JOIN (SELECT first_slot, complete_ns FROM records
           WHERE outcome = 'ok' AND acks = -1 AND first_slot IS NOT NULL) acked_records
  ON acked_records.first_slot = lookups.p * {SLOT} + lookups.first_off
LEFT JOIN (SELECT slots.slot FROM slots JOIN partitions ON partitions.p = slots.p
             AND partitions.compacted = 1
           WHERE slots.on_leader = 1 AND slots.copies >= slots.expected) kept_slots
  ON kept_slots.slot = lookups.p * {SLOT} + lookups.first_off
LEFT JOIN ({_LED}) leaderships ON leaderships.p = lookups.p AND leaderships.node = lookups.node
  AND leaderships.invoke_ns = lookups.at_ns
WHERE lookups.kind = 1 AND (
  (lookups.told < 0 AND lookups.api_version >= {END_AFTER_WATERMARK.version}
   AND partitions.log_start = 0 AND partitions.cut_end IS NULL
   AND lookups.first_off IS NOT NULL
    AND acked_records.complete_ns < lookups.at_ns AND COALESCE(leaderships.led, 1) = 1
    AND (partitions.compacted = 0 OR kept_slots.slot IS NOT NULL))
  OR (lookups.told >= partitions.log_start AND lookups.first_off < lookups.told
      AND (partitions.compacted = 0 OR kept_slots.slot IS NOT NULL))
  OR (lookups.told >= partitions.log_start AND found_slots.slot IS NOT NULL
      AND (lookups.first_off IS NULL OR lookups.first_off > lookups.told)))
UNION ALL {_WRONG_FIELDS}
UNION ALL {_not_newest(_NEWEST_BEFORE)} UNION ALL {_not_newest(_NEWEST_ACKED)}
UNION ALL
SELECT 'time went back', append_times.p, append_times.off, NULL, NULL, append_times.value_id, NULL,
  append_times.timestamp_ms, append_times.off,
  append_times.prev_ms, append_times.leader_epoch, 0, 0, NULL, NULL {_APPEND_TIMES}
    WHERE append_times.prev_ms > append_times.timestamp_ms""",
    excuses=LOSSES,
    explain=_explain,
    tie="finding.requested_ms, finding.node",
    compares_times=True,
    needs=("replicas", "logs"),
    reads=(
        *("slots", "records", "partitions", "answers"),
        *("state_spans", "replicas", "partitions.clock_moved"),
        *("partitions.cut_end",),
    ),
    rests_on=("offset_answers", "replicas", "logs", "sends", "states"),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.node, violation.at_ns)",
)
