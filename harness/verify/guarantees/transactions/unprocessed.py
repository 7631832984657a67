"""A pipeline processes every record at least once.

The application is judged from the outside: each record that its input finally holds must be in
its output, in some final pass. A copy is recognised by its value, which the application keeps.
The lab's own copies (workload `transactions`) record their source: each record below the group's
last committed offset must have a copy."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import RECORDS, SLOT, Excuse, Guarantee, place
from urteil.harness.verify.guarantees.transactions.offsets_not_atomic import (
    INPUTS,
    OUTPUT_GONE,
    SPOILT_NS,
)
from urteil.harness.verify.guarantees.transactions.torn_txn import LATE_END, SPOILED
from urteil.harness.verify.limits import FOREVER_NS

_JOINED = """
FROM records JOIN partitions ON partitions.p = records.sent_p
LEFT JOIN records copies ON copies.value_id = 'copy/' || records.value_id
LEFT JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
"""
_INPUT = """
WHERE records.sent = 1 AND records.log_slots > 0 AND partitions.copies = 0 AND partitions.ours = 1
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
"""Records without a copy that were not deleted, nor their copies: what was copied so early may have
been, where the output's log does not begin with its first record, and a compacted one may have
another record's copy in its stead, of the same key."""

PASSED = f"{INPUTS} AND records.shown_slot % {SLOT} < positions.position"

PROMISE = f"""CASE WHEN records.invoke_ns < {SPOILT_NS} THEN 'spoiled'
  ELSE (SELECT MAX(promise) FROM settings) END AS promised"""

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
    opportunities=f"SELECT COUNT(*) + (SELECT COUNT(*) {PASSED}) AS n {COPIED}",
    violations=f"""
SELECT 'missing' AS sub_kind, records.sent_p AS p, records.first_slot % {SLOT} AS off,
  records.invoke_ns AS at_ns, records.complete_ns AS until_ns, records.value_id, records.client,
  {PROMISE}
{_MISSING}
UNION ALL
SELECT 'missing', positions.p, records.shown_slot % {SLOT}, records.invoke_ns, records.complete_ns,
  records.value_id, records.client,
  CASE WHEN records.invoke_ns < partitions.spoilt_ns OR records.invoke_ns < {SPOILT_NS}
       THEN 'spoiled'
    WHEN (SELECT MAX(late) FROM txn_p) = 1 THEN 'late' END
{PASSED} AND outputs.source IS NULL AND NOT {OUTPUT_GONE}""",
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
        "partitions.spoilt_ns",
        "partitions.trimmed",
    ),
    rests_on=(*RECORDS, "txns", "commits", "commit_reads"),
    subjects=("partitions.copies", "group_positions"),
    needs_whole_passes=True,
)
