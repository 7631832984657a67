"""A record of an idempotent producer is in the log once.

The finding names the client: a Java producer of 3.9 may itself send a record twice after a
non-retriable error (KAFKA-14034)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from urteil.chaos.capabilities import IDEMPOTENCE
from urteil.harness.verify.guarantees.base import SLOT, Excuse, Guarantee, count_records, place
from urteil.harness.verify.guarantees.losses import LOST_RECORDS, RETRIED
from urteil.harness.verify.plurals import count_text, times
from urteil.harness.verify.reference import SmallHistory, Violation, places_of


def _explain(row: Mapping[str, Any]) -> str:
    record = f"{row['value_id']} of {row['client']} ({row.get('library', 'client unknown')})"
    if row["sub_kind"] == "one offset twice":
        return f"A final pass delivered {record} at {place(row)} more than once."
    elsewhere = "" if row["last_p"] == row["p"] else " of another partition"
    if row["sub_kind"] == "log":
        return (
            f"{record} lies {times(row['times'])}, first at {place(row)}, last at "
            f"{row['last_off']}{elsewhere}."
        )
    return (
        f"{record} was read at {count_text(row['times'], 'offset')}, first at {place(row)}, last "
        f"at {row['last_off']}{elsewhere}."
    )


_READ_TWICE = """
SELECT slots.value_id, slots.p, MIN(slots.off) AS off, MAX(slots.off) AS last_off,
  COUNT(*) AS times
FROM slots JOIN irregular_values records ON records.value_id = slots.value_id
  AND records.sent = 1 AND records.n_slots > 1 AND records.log_slots < 2 AND records.seen_slots < 2
WHERE slots.n_reads > 0
GROUP BY slots.value_id, slots.p HAVING COUNT(*) > 1
"""
"""Values that readers received at several offsets of a partition, of which the final log and the
final passes have at most one: the cleaner or retention removed the others."""

SPOILED = Excuse(
    when="violation.sub_kind = 'read' AND violation.spoiled = 1",
    reason="an unclean election or a lost disk may have destroyed the first copy",
    permits=LOST_RECORDS,
)


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A sent value is at one place of the logs, readers receive it at one offset of a partition,
    and a final pass delivers it once."""
    for send in history.sends:
        value = send.value_id
        stored, seen = (
            places_of(history.records_of[value]),
            places_of(history.final_reads_of[value]),
        )
        if len(stored) > 1 or len(seen) > 1:
            kind = "log" if len(stored) > 1 else "pass"
            yield Violation(kind, *(stored or seen)[0], value)
            continue
        received = places_of(history.reads_of[value])
        for first, later in pairwise(received):
            is_first = first == next(at for at in received if at[:2] == first[:2])
            if is_first and later[:2] == first[:2]:
                yield Violation("read", *first, value)
    for partition in history.partitions:
        for final_pass in partition.final_passes:
            delivered = [(read.offset, read.value_id) for read in final_pass.reads]
            for offset, value in delivered:
                if delivered.count((offset, value)) > 1 and value in history.sends_by_value:
                    yield partition.violation("one offset twice", offset, value)


GUARANTEE = Guarantee(
    name="duplicate",
    rank=80,
    about="one record appears twice although its producer is idempotent",
    promise="The idempotent producer ensures that exactly one copy of each message is written to "
    "the stream, retries included.",
    source="Kafka documentation, 3.3 Producer Configs: enable.idempotence; KIP-98",
    sub_kinds={
        "log": "twice in the final leader's log",
        "pass": "at several offsets in one final pass",
        "read": (
            "readers received it at several offsets, of which the final log has one at most, since "
            "the others were deleted or cleaned"
        ),
        "one offset twice": "one final pass delivered one offset more than once",
    },
    details=(
        "The value of an idempotent producer is twice in the final leader's log, or twice in one "
        "final pass, or readers received it at two offsets at any time. The finding names the "
        "client library (KAFKA-14034).",
    ),
    not_counted=(
        "`read` of records sent before all brokers knew of an unclean election, or of a disk that "
        "lost records (permitted).",
    ),
    requires=(IDEMPOTENCE,),
    opportunities=count_records(
        "FROM records WHERE records.sent = 1 AND records.idempotent = 1 "
        "AND (records.log_slots > 0 OR records.seen_slots > 0)"
    ),
    violations=f"""
SELECT CASE WHEN log_slots > 1 AND copies > 0 THEN 'log' ELSE 'pass' END AS sub_kind,
  COALESCE(first_slot, first_seen) DIV {SLOT} AS p,
  COALESCE(first_slot, first_seen) % {SLOT} AS off, invoke_ns AS at_ns,
  complete_ns AS until_ns, value_id, client, session, idempotent,
  COALESCE(last_slot, last_seen) % {SLOT} AS last_off,
  CASE WHEN log_slots > 1 THEN log_slots ELSE seen_slots END AS times,
  COALESCE(last_slot, last_seen) DIV {SLOT} AS last_p, 0 AS spoiled
FROM irregular_values WHERE sent = 1 AND (log_slots > 1 OR seen_slots > 1)
UNION ALL
SELECT 'read', twice.p, twice.off, records.invoke_ns, records.complete_ns, records.value_id,
  records.client, records.session, records.idempotent, twice.last_off, twice.times, twice.p,
  CASE WHEN records.invoke_ns < partitions.losses_ns THEN 1 ELSE 0 END
FROM ({_READ_TWICE}) twice JOIN irregular_values records ON records.value_id = twice.value_id
JOIN partitions ON partitions.p = twice.p
UNION ALL
SELECT 'one offset twice', slots.p, slots.off, records.invoke_ns, records.complete_ns,
  slots.value_id, records.client, records.session, 1, slots.off, slots.n_final, slots.p, 0
FROM slots JOIN records ON records.value_id = slots.value_id
WHERE records.sent = 1 AND slots.n_final > bit_count(slots.seen)""",
    excuses=(RETRIED, SPOILED),
    explain=_explain,
    excused_by_times=True,
    reads=(
        *("slots", "records", "irregular_values", "record_counts", "partitions"),
        "partitions.losses_ns",
    ),
    rests_on=("sends", "reads", "replicas"),
    reference=_reference,
)
