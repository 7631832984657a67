"""A record is at the offset of its acknowledgement, with the timestamp of that acknowledgement.

`without offset` and `another time` are judged for records sent once, in formats that store their
timestamp. A broker may recognise a repeated batch only as a duplicate, and then acknowledges it
with its newest timestamp. Without idempotence a batch may be in the log twice, and the acknowledged
copy may then be cleaned or deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, count_records, only_where, place
from urteil.harness.verify.guarantees.losses import (
    RETRIED,
    REUSED_OFFSET,
    lost_disks,
    unclean_election,
)
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset, place_of

_WITH_COPY = """
WHERE records.outcome = 'ok' AND records.acks <> 0 AND records.ack_off IS NOT NULL
  AND records.log_slots > 0
"""

TIMED = """
SELECT copies.value_id, MIN(copies.timestamp_ms) AS found_ms
FROM (SELECT reads.value_id, reads.timestamp_ms, reads.intact FROM reads
      UNION ALL SELECT replicas.value_id, replicas.timestamp_ms, replicas.intact
        FROM replicas) copies
JOIN irregular_values records ON records.value_id = copies.value_id AND records.rekeyed = 1
  AND records.outcome = 'ok' AND records.attempts = 1
JOIN partitions ON partitions.p = records.sent_p AND partitions.sent_times = 1
  AND partitions.checksums_known = 1
GROUP BY copies.value_id, records.timestamp_ms
HAVING MIN(copies.timestamp_ms) = MAX(copies.timestamp_ms)
  AND MIN(copies.timestamp_ms) <> records.timestamp_ms
  AND MIN(CASE WHEN copies.intact THEN 1 ELSE 0 END) = 1
"""
"""Records with one timestamp in all reads and logs, and another one in their acknowledgement."""

_SENT_ONCE = """
FROM irregular_values records JOIN partitions ON partitions.p = records.sent_p
  AND partitions.checksums_known = 1
WHERE records.outcome = 'ok' AND records.acks <> 0 AND records.ack_off IS NULL
  AND records.attempts = 1
"""


_READ_ELSEWHERE = """
SELECT records.value_id, records.p, MIN(slots.off) AS off
FROM irregular_values records JOIN partitions ON partitions.p = records.sent_p
  AND partitions.has_log = 1 AND partitions.compacted = 0
JOIN slots ON slots.value_id = records.value_id AND slots.n_reads > 0 AND slots.p = records.sent_p
WHERE records.sent = 1 AND records.outcome = 'ok' AND records.acks <> 0
  AND records.ack_off < partitions.log_start AND records.log_slots = 0
GROUP BY records.value_id, records.p, records.ack_off
HAVING MAX(CASE WHEN slots.off = records.ack_off THEN 1 ELSE 0 END) = 0
"""
"""Acknowledged records that retention or an administrator deleted, and that readers had received
only at other offsets."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "without offset":
        return (
            f"{row['value_id']} was sent once and acknowledged by {row['topic']}-"
            f"{row['partition']}, but without an offset."
        )
    if row["sub_kind"] == "another time":
        return (
            f"{row['value_id']} was acknowledged at {place(row)} with time {row['told_ms']}, but "
            f"has the timestamp with which it was sent, {row['found_ms']}."
        )
    if not row["has_log"] or row["is_deleted"]:
        return (
            f"{row['value_id']} was acknowledged at {place(row)}, but was read at offset "
            f"{row['found_off']}, and at the acknowledged one by no client."
        )
    return (
        f"{row['value_id']} was acknowledged at {place(row)}, but is at offset {row['found_off']}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """An acknowledged record is at the offset of its acknowledgement, with its timestamp; a record
    that was sent once is acknowledged with an offset."""
    for partition in history.partitions:
        for send in partition.sends:
            value, offset = send.value_id, acknowledged_offset(send)
            records = history.records_of[value]
            if send.outcome != "ok":
                continue
            if send.acks != 0 and offset is None and send.attempts == 1:
                yield partition.violation("without offset", None, value)
            is_at_offset = any(
                place_of(row) == (partition.topic, partition.partition, offset) for row in records
            )
            if send.acks != 0 and offset is not None and records and not is_at_offset:
                yield partition.violation("elsewhere", offset, value)
            received = {
                row.offset
                for row in history.reads_of[value]
                if (row.topic, row.partition) == (partition.topic, partition.partition)
            }
            is_deleted = offset is not None and offset < partition.start and not records
            is_judged = send.acks != 0 and is_deleted and not partition.is_compacted
            if is_judged and received and offset not in received:
                yield partition.violation("elsewhere", offset, value)
            seen = history.reads_of[value] + history.copies_of[value]
            times = {row.timestamp_ms for row in seen}
            is_sure = len(times) == 1 and all(row.intact for row in seen)
            if send.attempts == 1 and is_sure and times != {send.timestamp_ms}:
                yield partition.violation("another time", offset, value)


GUARANTEE = Guarantee(
    name="misplaced_ack",
    rank=100,
    about="a record survives at another offset or time than its acknowledgement says",
    promise="The acknowledgement of a produced batch carries the offset that the record was "
    "assigned in its partition, and the time that the broker set, if it did.",
    source="Kafka protocol guide, Produce response: base_offset, log_append_time_ms; "
    "RecordMetadata",
    sub_kinds={
        "elsewhere": (
            "an acknowledged record survives, or was read before it was deleted, but not at the "
            "offset of its acknowledgement"
        ),
        "without offset": "a record that was sent once is acknowledged without an offset",
        "another time": (
            "the acknowledgement has another time than the send and the record, though brokers do "
            "not stamp it"
        ),
    },
    not_counted=(
        "Acknowledgements without an offset, and times, of records that were sent several times.",
        "Clients that do not expose their attempts (all but kafka-python), and imported histories "
        "without logs.",
        "acks=1 where an epoch began below the offset after the send (permitted).",
        "Without idempotence, records that were sent several times: where the acknowledged copy "
        "may be cleaned or deleted (permitted), or where there are no logs and no read at the "
        "acknowledged offset (permitted).",
    ),
    opportunities=count_records(f"FROM records {_WITH_COPY} AND records.sent_p IS NOT NULL"),
    violations=f"""
SELECT 'elsewhere' AS sub_kind, records.p, records.ack_off AS off, records.invoke_ns AS at_ns,
  records.complete_ns AS until_ns, records.value_id, records.client, records.acks,
  records.first_slot % {SLOT} AS found_off, partitions.unclean_on,
  COALESCE(floors.any_floor, 0) AS any_floor, COALESCE(floors.unclean_floor, 0) AS unclean_floor,
  floors.lost_floor, CAST(NULL AS BIGINT) AS told_ms, CAST(NULL AS BIGINT) AS found_ms,
  CASE WHEN records.idempotent = 0 AND COALESCE(records.attempts, 2) > 1
    AND (partitions.compacted = 1 OR records.ack_off < partitions.log_start) THEN 1
    WHEN records.idempotent = 0 AND partitions.has_log = 0 AND read_ranges.p IS NULL THEN 1
    ELSE 0 END AS again, partitions.has_log, 0 AS is_deleted
FROM irregular_values records JOIN partitions ON partitions.p = records.sent_p
LEFT JOIN read_ranges ON read_ranges.p = records.sent_p AND records.ack_off >= read_ranges.lo
  AND records.ack_off < read_ranges.hi
LEFT JOIN floors ON floors.p = records.sent_p AND records.invoke_ns >= floors.from_ns
  AND records.invoke_ns < floors.to_ns
{_WITH_COPY} AND records.at_ack = 0
UNION ALL
SELECT 'elsewhere', moved.p, records.ack_off, records.invoke_ns, records.complete_ns,
  records.value_id, records.client, records.acks, moved.off, partitions.unclean_on,
  COALESCE(floors.any_floor, 0), COALESCE(floors.unclean_floor, 0), floors.lost_floor, NULL, NULL,
  CASE WHEN records.idempotent = 0 AND COALESCE(records.attempts, 2) > 1 THEN 1 ELSE 0 END, 1, 1
FROM ({_READ_ELSEWHERE}) moved JOIN irregular_values records ON records.value_id = moved.value_id
JOIN partitions ON partitions.p = moved.p
LEFT JOIN floors ON floors.p = moved.p AND records.invoke_ns >= floors.from_ns
  AND records.invoke_ns < floors.to_ns
UNION ALL
SELECT 'without offset', records.sent_p, NULL, records.invoke_ns, records.complete_ns,
  records.value_id, records.client, records.acks, NULL, 0, 0, 0, NULL, NULL, NULL, 0, 1, 0
{_SENT_ONCE}
UNION ALL
SELECT 'another time', records.sent_p, records.ack_off, records.invoke_ns, records.complete_ns,
  records.value_id, records.client, records.acks, NULL, 0, 0, 0, NULL, records.timestamp_ms,
  timed_copies.found_ms, 0, 1, 0
FROM ({TIMED}) timed_copies JOIN irregular_values records
  ON records.value_id = timed_copies.value_id""",
    excuses=only_where(
        "violation.sub_kind = 'elsewhere'",
        (RETRIED.where("violation.again = 1"), REUSED_OFFSET, unclean_election(), lost_disks()),
    ),
    explain=_explain,
    excused_by_times=True,
    reads=(
        "slots",
        "irregular_values",
        "record_counts",
        "partitions",
        "read_ranges",
        "floors",
        "reads",
        "replicas",
        "partitions.sent_times",
    ),
    reference=_reference,
)
