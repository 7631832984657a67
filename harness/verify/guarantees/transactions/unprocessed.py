"""A pipeline processes every record at least once.

The application is judged from the outside: each record that its input finally holds must be in
its output, in some final pass. A copy is recognised by its value, which the application keeps.
The lab's own copies (workload `transactions`) record their source: each record below the group's
last committed offset must have a copy."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.guarantees.base import RECORDS, SLOT, Excuse, Guarantee, Occasion, place
from urteil.harness.verify.guarantees.transactions.offsets_not_atomic import (
    INPUTS,
    OUTPUT_REMOVED,
    SPOILT_NS,
    inputs_of,
    is_output_removed,
    is_shown,
)
from urteil.harness.verify.guarantees.transactions.torn_txn import LATE_END, SPOILED
from urteil.harness.verify.limits import FOREVER_NS
from urteil.harness.verify.reference import Row, SmallHistory, Violation, places_of

_JOINED = """
FROM records JOIN partitions ON partitions.p = records.sent_p
LEFT JOIN records copies ON copies.value_id = 'copy/' || records.value_id
LEFT JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
"""
_INPUT = """
WHERE records.sent = 1 AND records.log_slots > 0 AND partitions.copies = 0 AND partitions.in_run = 1
  AND partitions.compacted = 0 AND EXISTS (SELECT 1 FROM partitions WHERE copies = 1
                                            AND seen_end IS NOT NULL)
  AND (NOT EXISTS (SELECT 1 FROM mirrors) OR partitions.p IN (SELECT source_p FROM mirrors))
  AND CASE WHEN records.rc_asked = 1 THEN records.rc_shown = 1
        ELSE records.txn IS NULL OR COALESCE(transactions.fate, '') = 'committed' END
"""
COPIED = f"{_JOINED} {_INPUT}"
"""Records of the input that readers of committed records may see, each with its copy."""

_KEYS = """
SELECT records.sent_key, COUNT(*) AS n FROM records
WHERE records.sent = 1 AND records.log_slots > 0
  AND EXISTS (SELECT 1 FROM partitions WHERE copies = 1 AND compacted = 1)
GROUP BY records.sent_key
"""
_DELETED_NS = f"""
(SELECT MAX(CASE WHEN retention_ns IS NULL OR retention_bytes >= 0 OR trimmed = 1
   THEN {FOREVER_NS} ELSE ends_ns - retention_ns END)
 FROM partitions WHERE copies = 1 AND log_start > 0)
"""
_MISSING = f"""
{_JOINED} LEFT JOIN ({_KEYS}) shown_keys ON shown_keys.sent_key = records.sent_key
{_INPUT} AND COALESCE(copies.seen_slots, 0) = 0
AND records.last_slot % {SLOT} >= partitions.log_start
AND records.invoke_ns >= COALESCE({_DELETED_NS}, records.invoke_ns)
AND COALESCE(shown_keys.n, 0) <= 1
"""
"""Records without a copy, if neither they nor their copies were deleted. An early copy may be
deleted if the output's log does not begin with its first record, and in a compacted output a copy
of another record with the same key may replace it."""

PASSED = f"{INPUTS} AND records.shown_slot % {SLOT} < positions.position"

PROMISE = f"""CASE WHEN records.invoke_ns < {SPOILT_NS} THEN 'spoiled'
  ELSE (SELECT MAX(promise) FROM settings) END AS promised"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Each record that readers of an application's input may see has a copy in some final pass;
    each input below the position of a group that moves with transactions has an output."""
    for send in visible_inputs(history):
        partition = history.partition_of(send)
        places = places_of(history.records_of[send.value_id])
        is_kept = places[-1][2] >= partition.part.log_start
        has_copy = history.final_reads_of[f"copy/{send.value_id}"]
        if is_kept and not has_copy and not _may_lack(history, send):
            yield partition.violation("missing", places[0][2], send.value_id)
    for position in history.derived_rows("group_positions"):
        for send, offset, has_output in inputs_of(history, position):
            is_passed = offset < (position.position or 0)
            if is_passed and not has_output and not is_output_removed(history, send):
                yield history.partition_of(send).violation("missing", offset, send.value_id)


def visible_inputs(history: SmallHistory) -> Iterator[Row]:
    """The records of an application's input that readers of committed records may see; with
    mirrors, those of their sources."""
    has_output = any(
        row.copies and row.seen_end is not None for row in history.derived_rows("partitions")
    )
    sources = {row.source_p for row in history.derived_rows("mirrors")}
    for send in history.sends if has_output else ():
        part = history.partition_of(send).part
        is_input = part.in_run and not part.copies and (not sources or part.p in sources)
        if is_input and not part.compacted and history.records_of[send.value_id]:
            has_passes = bool(history.committed_passes_over(send))
            is_committed = send.txn is None or history.fate_of(send) == "committed"
            if is_shown(history, send) if has_passes else is_committed:
                yield send


def _may_lack(history: SmallHistory, send: Row) -> bool:
    """Whether the output may have deleted the copy of a record, or cleaned it for its key."""
    outputs = [row for row in history.derived_rows("partitions") if row.copies]
    for part in outputs:
        is_timed = not (
            part.retention_ns is None or part.trimmed or (part.retention_bytes or -1) >= 0
        )
        is_old = not is_timed or send.invoke_ns < part.ends_ns - part.retention_ns
        if part.log_start > 0 and is_old:
            return True
    same = [
        other
        for other in history.sends
        if other.key == send.key is not None and history.records_of[other.value_id]
    ]
    return any(part.compacted for part in outputs) and len(same) > 1


GUARANTEE = Guarantee(
    name="unprocessed",
    rank=60,
    about="a record of the pipeline's input is missing from its output",
    promise="An application that commits its position after its output was acknowledged processes "
    "every record at least once.",
    source="Kafka documentation, 4.6 Message Delivery Semantics",
    sub_kinds={
        "missing": "no final pass over the output delivered a copy",
    },
    details=(
        "Judged is the final state of an application's output, once it had 30 s without a new "
        "copy, and of the copies of workload `transactions`.",
    ),
    not_counted=(
        "At most once (permitted).",
        "Records that no reader of committed records gets, or below the begin of the input's log.",
        "Copies that the output's retention may have deleted, or that a compacted output may have "
        "cleaned because other records have the key.",
        "Inputs that were sent before all brokers knew of an unclean election, or of a disk that "
        "lost records, where it may have destroyed outputs, offsets or decisions (permitted).",
    ),
    occasion=Occasion.PIPELINE,
    opportunities=f"SELECT COUNT(*) + (SELECT COUNT(*) {PASSED}) AS n {COPIED}",
    violations=f"""
SELECT 'missing' AS sub_kind, records.sent_p AS p, records.first_slot % {SLOT} AS off,
  records.invoke_ns AS at_ns, records.complete_ns AS until_ns, records.value_id, records.client,
  {PROMISE}
{_MISSING}
UNION ALL
SELECT 'missing', positions.p, records.shown_slot % {SLOT}, records.invoke_ns, records.complete_ns,
  records.value_id, records.client,
  CASE WHEN records.invoke_ns < partitions.losses_ns OR records.invoke_ns < {SPOILT_NS}
       THEN 'spoiled'
    WHEN (SELECT MAX(late) FROM txn_p) = 1 THEN 'late' END
{PASSED} AND outputs.source IS NULL AND NOT {OUTPUT_REMOVED}""",
    excuses=(
        Excuse(
            when="violation.promised = 'at-most-once'", reason="the application promises no more"
        ),
        LATE_END.where("violation.promised = 'late'"),
        SPOILED.where("violation.promised = 'spoiled'"),
    ),
    explain=lambda row: f"{row['value_id']} at {place(row)} was never copied to the output.",
    excused_by_times=True,
    copies_lost_elsewhere=True,
    reads=(
        "records",
        "partitions",
        "settings",
        "txn_p",
        "group_positions",
        "mirrors",
        "partitions.losses_ns",
        "partitions.trimmed",
    ),
    rests_on=(*RECORDS, "txns", "commits", "commit_reads"),
    subjects=("partitions.copies", "group_positions"),
    needs_complete_passes=True,
    reference=_reference,
)
