"""A pipeline that promises exactly once, or at most once, processes no record twice.

For a pipeline that promises at least once, this is counted and permitted. Copies within
transactions (workload `transactions`) promise exactly once."""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import RECORDS, SLOT, Excuse, Guarantee, place
from urteil.harness.verify.guarantees.transactions.offsets_not_atomic import SPOILT_NS
from urteil.harness.verify.guarantees.transactions.torn_txn import LATE_END, SPOILED
from urteil.harness.verify.guarantees.transactions.unprocessed import COPIED, PROMISE
from urteil.harness.verify.plurals import times

_MADE = f"""
SELECT w.source, COUNT(*) AS copies, MIN(w.shown_slot) % {SLOT} AS first_copy,
  MAX(w.shown_slot) % {SLOT} AS last_copy, MAX(t.late) AS late
FROM vals w JOIN txn_p t ON t.client = w.client AND t.session = w.session AND t.txn = w.txn
JOIN parts q ON q.p = w.sent_p
WHERE w.source IS NOT NULL AND w.rc_shown = 1 GROUP BY w.source, q.topic_id, COALESCE(t.grp, '')
"""
"""Copies in transactions that readers of committed records see, by what they were made of, the
topic that they are in, and the group whose positions moved with them."""

_ONCE = "GREATEST(1, v.n_slots)"
"""How often the input itself was seen: a producer without idempotence may have sent it twice."""

GUARANTEE = Guarantee(
    name="processed_twice",
    rank=70,
    about="a record of the pipeline's input occurs more than once in its output",
    promise="Exactly-once processing: each record affects the output once, even when the "
    "application fails and is restarted.",
    source="Kafka documentation, 4.6 Message Delivery Semantics; KIP-98, KIP-447",
    sub_kinds={
        "twice": "the output has more copies than the input has records",
    },
    details=("Judged is the final state, as for `unprocessed`.",),
    not_counted=(
        "At least once (permitted).",
        "As many copies as the input itself was seen: a producer without idempotence may have "
        "sent it twice.",
        "Inputs that were sent before all brokers knew of an unclean election, or of a disk that "
        "lost records, where it may have destroyed outputs, offsets or decisions (permitted).",
    ),
    opportunities=f"""
SELECT COUNT(*) + (SELECT COUNT(*) FROM ({_MADE}) m) AS n {COPIED} AND w.seen_slots > 0""",
    violations=f"""
SELECT 'twice' AS sub_kind, v.sent_p AS p, v.first_slot % {SLOT} AS off, v.invoke_ns AS at_ns,
  v.complete_ns AS until_ns, v.value_id, v.client, w.seen_slots AS copies,
  w.first_seen % {SLOT} AS first_copy, w.last_seen % {SLOT} AS last_copy, {PROMISE}
{COPIED} AND w.seen_slots > {_ONCE}
UNION ALL
SELECT 'twice', v.sent_p, v.shown_slot % {SLOT}, v.invoke_ns, v.complete_ns, v.value_id, v.client,
  m.copies, m.first_copy, m.last_copy, CASE WHEN m.late = 1 THEN 'late'
    WHEN v.invoke_ns < {SPOILT_NS} THEN 'spoiled' ELSE 'exactly-once' END
FROM ({_MADE}) m JOIN vals v ON v.value_id = m.source WHERE m.copies > {_ONCE}""",
    excuses=(
        Excuse(
            when="x.promised = 'at-least-once'",
            reason="the application promises at least once",
        ),
        LATE_END.where("x.promised = 'late'"),
        SPOILED.where("x.promised = 'spoiled'"),
    ),
    explain=lambda row: (
        f"{row['value_id']} at {place(row)} is {times(row['copies'])} in the output, first at "
        f"offset {row['first_copy']}, last at {row['last_copy']}."
    ),
    excused_by_times=True,
    copies_lost_elsewhere=True,
    reads=("vals", "parts", "settings", "txn_p", "mirrors", "parts.spoilt_ns"),
    rests_on=(*RECORDS, "txns", "commits"),
    subjects=("parts.copies", "txn_p"),
)
