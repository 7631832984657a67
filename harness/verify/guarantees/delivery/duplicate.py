"""A record of an idempotent producer is in the log once.

The finding names the client: a Java producer of 3.9 may itself send a record twice after a
non-retriable error (KAFKA-14034)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import IDEMPOTENCE
from urteil.harness.verify.guarantees.base import SLOT, Guarantee, count_records, place
from urteil.harness.verify.guarantees.losses import RETRIED
from urteil.harness.verify.plurals import count_text, times
from urteil.harness.verify.reference import SmallHistory, Violation, places_of


def _explain(row: Mapping[str, Any]) -> str:
    who = f"{row['value_id']} of {row['client']} ({row.get('library', 'client unknown')})"
    if row["sub_kind"] == "one offset twice":
        return f"A final pass delivered {who} at {place(row)} more than once."
    elsewhere = "" if row["last_p"] == row["p"] else " of another partition"
    if row["sub_kind"] == "log":
        return (
            f"{who} lies {times(row['times'])}, first at {place(row)}, last at "
            f"{row['last_off']}{elsewhere}."
        )
    return (
        f"{who} was read at {count_text(row['times'], 'offset')}, first at {place(row)}, last at "
        f"{row['last_off']}{elsewhere}."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A sent value is at one place of the logs, and a final pass delivers it once."""
    for send in history.sends:
        value = send.value_id
        stored, seen = (
            places_of(history.records_of[value]),
            places_of(history.final_reads_of[value]),
        )
        if len(stored) > 1 or len(seen) > 1:
            kind = "log" if len(stored) > 1 else "pass"
            yield Violation(kind, *(stored or seen)[0], value)
    for partition in history.partitions:
        for final_pass in partition.final_passes:
            given = [(read.offset, read.value_id) for read in final_pass.reads]
            for offset, value in given:
                if given.count((offset, value)) > 1 and value in history.sends_by_value:
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
        "one offset twice": "one final pass delivered one offset more than once",
    },
    details=(
        "The value of an idempotent producer is twice in the final leader's log, or twice in one "
        "final pass. The finding names the client library (KAFKA-14034).",
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
  COALESCE(last_slot, last_seen) DIV {SLOT} AS last_p
FROM irregular_values WHERE sent = 1 AND (log_slots > 1 OR seen_slots > 1)
UNION ALL
SELECT 'one offset twice', slots.p, slots.off, records.invoke_ns, records.complete_ns,
  slots.value_id, records.client, records.session, 1, slots.off, slots.n_final, slots.p
FROM slots JOIN records ON records.value_id = slots.value_id
WHERE records.sent = 1 AND slots.n_final > bit_count(slots.seen)""",
    excuses=(RETRIED,),
    explain=_explain,
    reads=("slots", "records", "irregular_values", "record_counts"),
    rests_on=("sends", "reads", "replicas"),
    reference=_reference,
)
