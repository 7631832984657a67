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
FROM vals v JOIN parts q ON q.p = v.sent_p
LEFT JOIN vals w ON w.value_id = 'copy/' || v.value_id
LEFT JOIN txn_p t ON t.client = v.client AND t.session = v.session AND t.txn = v.txn
"""
_INPUT = """
WHERE v.sent = 1 AND v.log_slots > 0 AND q.copies = 0 AND q.ours = 1 AND q.compacted = 0
  AND EXISTS (SELECT 1 FROM parts o WHERE o.copies = 1 AND o.seen_end IS NOT NULL)
  AND (NOT EXISTS (SELECT 1 FROM mirrors m) OR q.p IN (SELECT m.source_p FROM mirrors m))
  AND CASE WHEN v.rc_asked = 1 THEN v.rc_shown = 1
        ELSE v.txn IS NULL OR COALESCE(t.fate, '') = 'committed' END
"""
COPIED = f"{_JOINED} {_INPUT}"
"""Records of the input that readers of committed records may see, each with its copy."""

_KEYS = """
SELECT y.sent_key, COUNT(*) AS n FROM vals y
WHERE y.sent = 1 AND y.log_slots > 0
  AND EXISTS (SELECT 1 FROM parts o WHERE o.copies = 1 AND o.compacted = 1)
GROUP BY y.sent_key
"""
_DELETED_NS = f"""
(SELECT MAX(CASE WHEN o.retention_ns IS NULL OR o.retention_bytes >= 0 OR o.trimmed = 1
   THEN {FOREVER_NS} ELSE o.ends_ns - o.retention_ns END)
 FROM parts o WHERE o.copies = 1 AND o.log_start > 0)
"""
_MISSING = f"""
{_JOINED} LEFT JOIN ({_KEYS}) y ON y.sent_key = v.sent_key
{_INPUT} AND COALESCE(w.seen_slots, 0) = 0 AND v.last_slot % {SLOT} >= q.log_start
  AND v.invoke_ns >= COALESCE({_DELETED_NS}, v.invoke_ns) AND COALESCE(y.n, 0) <= 1
"""
"""Records without a copy that were not deleted, nor their copies: what was copied so early may have
been, where the output's log does not begin with its first record, and a compacted one may have
another record's copy in its stead, of the same key."""

PASSED = f"{INPUTS} AND v.shown_slot % {SLOT} < k.position"

PROMISE = f"""CASE WHEN v.invoke_ns < {SPOILT_NS} THEN 'spoiled'
  ELSE (SELECT MAX(z.promise) FROM settings z) END AS promised"""

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
SELECT 'missing' AS sub_kind, v.sent_p AS p, v.first_slot % {SLOT} AS off, v.invoke_ns AS at_ns,
  v.complete_ns AS until_ns, v.value_id, v.client, {PROMISE}
{_MISSING}
UNION ALL
SELECT 'missing', k.p, v.shown_slot % {SLOT}, v.invoke_ns, v.complete_ns, v.value_id, v.client,
  CASE WHEN v.invoke_ns < q.spoilt_ns OR v.invoke_ns < {SPOILT_NS} THEN 'spoiled'
    WHEN (SELECT MAX(l.late) FROM txn_p l) = 1 THEN 'late' END
{PASSED} AND w.source IS NULL AND NOT {OUTPUT_GONE}""",
    excuses=(
        Excuse(when="x.promised = 'at-most-once'", reason="the application promises no more"),
        LATE_END.where("x.promised = 'late'"),
        SPOILED.where("x.promised = 'spoiled'"),
    ),
    explain=lambda row: f"{row['value_id']} at {place(row)} was never copied to the output.",
    excused_by_times=True,
    copies_lost_elsewhere=True,
    reads=(
        "vals",
        "parts",
        "settings",
        "txn_p",
        "group_positions",
        "mirrors",
        "parts.spoilt_ns",
        "parts.trimmed",
    ),
    rests_on=(*RECORDS, "txns", "commits", "commit_reads"),
    subjects=("parts.copies", "group_positions"),
    needs_whole_passes=True,
)
