"""A read-process-write step is atomic: its output exists if and only if its input is consumed.

Judged at the end, by the group's last committed offset and the final passes of readers of
committed records: every input below that offset has its output, and every input with an output
lies below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.verify.guarantees.base import RECORDS, SLOT, Guarantee, place
from urteil.harness.verify.guarantees.transactions.torn_txn import EXCUSES

INPUTS = """
FROM group_positions k JOIN vals v ON v.sent_p = k.p JOIN parts q ON q.p = k.p
LEFT JOIN (SELECT w.source, COALESCE(t.grp, '') AS grp, MIN(w.client) AS client,
             MIN(w.txn) AS txn
           FROM vals w LEFT JOIN txn_p t
             ON t.client = w.client AND t.session = w.session AND t.txn = w.txn
           WHERE w.source IS NOT NULL AND w.rc_shown = 1
           GROUP BY w.source, COALESCE(t.grp, '')) w
  ON w.source = v.value_id AND w.grp IN (k.grp, '')
WHERE v.sent = 1 AND v.rc_shown = 1 AND q.compacted = 0
"""
"""Records that readers of committed records see, in partitions that such a group has consumed, each
with an output that readers see of a transaction which moved that group (or nobody knows whom)."""

OUTPUT_GONE = """EXISTS (SELECT 1 FROM vals o JOIN parts z ON z.p = o.sent_p
  WHERE o.source = v.value_id AND (z.compacted = 1 OR COALESCE(o.ack_off, 0) < z.log_start
    OR (o.log_slots > 0 AND o.rc_asked = 0)))"""
"""Of `v` there was an output where no reader can be given it any more: below the log's start, in a
compacted topic, or where no final pass of readers of committed records went."""

SPOILT_NS = """(SELECT MAX(o.spoilt_ns) FROM parts o
  WHERE o.copies = 1 OR o.topic IN ('__consumer_offsets', '__transaction_state')
    OR o.p IN (SELECT w.sent_p FROM vals w WHERE w.source IS NOT NULL))"""
"""Until when settings, or faults, may have taken outputs, positions or decisions."""

_WRONG = f"""
{INPUTS} AND ((v.shown_slot % {SLOT} < k.position AND w.source IS NULL AND NOT {OUTPUT_GONE})
  OR (w.source IS NOT NULL AND v.shown_slot % {SLOT} >= COALESCE(k.position, 0)))
"""


def _explain(row: Mapping[str, Any]) -> str:
    stands = f"{row['grp']} stands at {row['position']}"
    if row["sub_kind"] == "consumed":
        return f"{stands}, past {row['value_id']} at {place(row)}, of which there is no output."
    return (
        f"{row['value_id']} at {place(row)} has its output ({row['client']}, transaction "
        f"{row['txn']}), yet {stands} and will read it again."
    )


GUARANTEE = Guarantee(
    name="offsets_not_atomic",
    rank=50,
    about="the outputs and the consumed offsets of a read-process-write step disagree",
    promise="Consumed offsets that are sent to a transaction are committed only if the transaction "
    "is.",
    source="KafkaProducer.sendOffsetsToTransaction; KIP-98, KIP-447",
    sub_kinds={
        "consumed": (
            "in the end a record is below the position of a group that moves with transactions, "
            "and has no visible output"
        ),
        "not consumed": "it has an output, and is not below the position",
    },
    not_counted=(
        "Outputs below their log's start, in a compacted topic, or without a final pass of "
        "readers of committed records.",
        "Outputs of transactions that moved another group.",
        "Inputs that were sent before all brokers knew of an unclean election, or of a disk that "
        "lost records, where it may have destroyed outputs, offsets or decisions (permitted).",
    ),
    requires=(TRANSACTIONS,),
    opportunities=f"SELECT COUNT(*) AS n {INPUTS}",
    violations=f"""
SELECT CASE WHEN w.source IS NULL THEN 'consumed' ELSE 'not consumed' END AS sub_kind, k.p,
  v.shown_slot % {SLOT} AS off, v.invoke_ns AS at_ns, k.asked_ns AS until_ns, k.grp, v.value_id,
  k.position, w.client, w.txn, (SELECT MAX(t.late) FROM txn_p t) AS late,
  CASE WHEN v.invoke_ns < q.spoilt_ns OR v.invoke_ns < {SPOILT_NS} THEN 1 ELSE 0 END AS spoiled
{_WRONG}""",
    excuses=EXCUSES,
    explain=_explain,
    tie="j.value_id, j.grp",
    compares_times=True,
    needs=("txns", "sends", "commits", "commit_reads", "passes"),
    reads=("vals", "parts", "txn_p", "group_positions", "parts.spoilt_ns"),
    rests_on=(*RECORDS, "txns", "commits", "commit_reads"),
)
