"""A pipeline that promises exactly once, or at most once, processes no record twice.

One that promises at least once may: then it is counted and permitted.
"""

from __future__ import annotations

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, place
from urteil.harness.verify.guarantees.unprocessed import COPIED, PROMISE

GUARANTEE = Guarantee(
    name="processed_twice",
    about="a record of the pipeline's input is more than once in its output",
    promise="Exactly-once processing: each record affects the output once, even when the "
    "application fails and is restarted.",
    source="Kafka documentation, 4.6 Message Delivery Semantics; KIP-98, KIP-447",
    opportunities=f"SELECT COUNT(*) AS n {COPIED} AND w.seen_slots > 0",
    violations=f"""
SELECT 'twice' AS sub_kind, v.sent_p AS p, v.first_slot % {SLOT} AS off, v.invoke_ns AS at_ns,
  v.complete_ns AS until_ns, v.value_id, v.client, w.seen_slots AS copies,
  w.first_seen % {SLOT} AS first_copy, w.last_seen % {SLOT} AS last_copy, {PROMISE}
{COPIED} AND w.seen_slots > 1""",
    permitted="CASE WHEN x.promised = 'at-least-once' THEN 'the application promises at least once'"
    " END",
    explain=lambda row: (
        f"{row['value_id']} at {place(row)} is {row['copies']} times in the output, first at "
        f"offset {row['first_copy']}, last at {row['last_copy']}."
    ),
    sub_kinds=("twice",),
)
