"""A pipeline that promises exactly once, or at most once, processes no record twice.

For a pipeline that promises at least once, this is counted and permitted. Copies within
transactions (workload `transactions`) promise exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from urteil.harness.verify.guarantees.base import RECORDS, SLOT, Excuse, Guarantee, Occasion, place
from urteil.harness.verify.guarantees.transactions.offsets_not_atomic import SPOILT_NS, is_shown
from urteil.harness.verify.guarantees.transactions.torn_txn import LATE_END, SPOILED
from urteil.harness.verify.guarantees.transactions.unprocessed import (
    COPIED,
    PROMISE,
    visible_inputs,
)
from urteil.harness.verify.plurals import times
from urteil.harness.verify.reference import SmallHistory, Violation, places_of

_TXN_COPIES = f"""
SELECT records.source, COUNT(*) AS copies, MIN(records.shown_slot) % {SLOT} AS first_copy,
  MAX(records.shown_slot) % {SLOT} AS last_copy, MAX(transactions.late) AS late
FROM records JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
JOIN partitions ON partitions.p = records.sent_p
WHERE records.source IS NOT NULL AND records.rc_shown = 1 GROUP BY records.source,
  partitions.topic_id, COALESCE(transactions.grp, '')
"""
"""Copies in transactions that readers of committed records see, by their source, their topic, and
the group whose positions moved with them."""

_INPUT_PLACES = "GREATEST(1, records.n_slots)"
"""The number of places of the input: a producer without idempotence may have sent it twice."""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No input has more copies than places: copies of an application in all final passes together,
    copies within transactions by their topic and the group that they moved."""
    for send in visible_inputs(history):
        copies = places_of(history.final_reads_of[f"copy/{send.value_id}"])
        if len(copies) > max(1, len(history.places_of_send(send))):
            offset = places_of(history.records_of[send.value_id])[0][2]
            yield history.partition_of(send).violation("twice", offset, send.value_id)
    groups = {(row.client, row.session, row.txn): row.grp for row in history.derived_rows("txn_p")}
    for send in history.sends:
        made = Counter(
            (output.topic, groups[output.client, output.session, output.txn])
            for output in history.outputs_of[send.value_id]
            if (output.client, output.session, output.txn) in groups and is_shown(history, output)
        )
        if max(made.values(), default=0) > max(1, len(history.places_of_send(send))):
            places = history.seen_places(send.value_id)
            first = places[0][2] if places else None
            yield history.partition_of(send).violation("twice", first, send.value_id)


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
    unused_evidence=(
        "Copies in committed transactions that no final pass of readers of committed "
        "records covers.",
    ),
    occasion=Occasion.PIPELINE,
    opportunities=f"""
SELECT COUNT(*) + (SELECT COUNT(*) FROM ({_TXN_COPIES}) outputs) AS n {COPIED}
  AND copies.seen_slots > 0""",
    violations=f"""
SELECT 'twice' AS sub_kind, records.sent_p AS p, records.first_slot % {SLOT} AS off,
  records.invoke_ns AS at_ns, records.complete_ns AS until_ns, records.value_id, records.client,
  copies.seen_slots AS copies, copies.first_seen % {SLOT} AS first_copy,
  copies.last_seen % {SLOT} AS last_copy, {PROMISE}
{COPIED} AND copies.seen_slots > {_INPUT_PLACES}
UNION ALL
SELECT 'twice', records.sent_p, records.shown_slot % {SLOT}, records.invoke_ns, records.complete_ns,
  records.value_id, records.client, outputs.copies, outputs.first_copy, outputs.last_copy,
  CASE WHEN outputs.late = 1 THEN 'late'
    WHEN records.invoke_ns < {SPOILT_NS} THEN 'spoiled' ELSE 'exactly-once' END
FROM ({_TXN_COPIES}) outputs JOIN records ON records.value_id = outputs.source
  WHERE outputs.copies > {_INPUT_PLACES}""",
    excuses=(
        Excuse(
            when="violation.promised = 'at-least-once'",
            reason="the application promises at least once",
        ),
        LATE_END.where("violation.promised = 'late'"),
        SPOILED.where("violation.promised = 'spoiled'"),
    ),
    explain=lambda row: (
        f"{row['value_id']} at {place(row)} is {times(row['copies'])} in the output, first at "
        f"offset {row['first_copy']}, last at {row['last_copy']}."
    ),
    excused_by_times=True,
    copies_lost_elsewhere=True,
    reads=("records", "partitions", "settings", "txn_p", "mirrors", "partitions.losses_ns"),
    rests_on=(*RECORDS, "txns", "commits"),
    subjects=("partitions.copies", "txn_p"),
    reference=_reference,
)
