"""A read-process-write step is atomic: its output exists if and only if its input is consumed.

Judged at the end, by the group's last committed offset and the final passes of readers of committed
records: every input below that offset has its output, and every input with an output is below
it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.verify.guarantees.base import RECORDS, SLOT, Guarantee, Occasion, place
from urteil.harness.verify.guarantees.transactions.torn_txn import EXCUSES
from urteil.harness.verify.reference import Row, SmallHistory, Violation, acknowledged_offset

INPUTS = """
FROM group_positions positions JOIN records ON records.sent_p = positions.p JOIN partitions
  ON partitions.p = positions.p
LEFT JOIN (SELECT records.source, COALESCE(transactions.grp, '') AS grp,
             MIN(records.client) AS client,
             MIN(records.txn) AS txn
           FROM records LEFT JOIN txn_p transactions
             ON transactions.client = records.client AND transactions.session = records.session
               AND transactions.txn = records.txn
           WHERE records.source IS NOT NULL AND records.rc_shown = 1
           GROUP BY records.source, COALESCE(transactions.grp, '')) outputs
  ON outputs.source = records.value_id AND outputs.grp IN (positions.grp, '')
WHERE records.sent = 1 AND records.rc_shown = 1 AND partitions.compacted = 0
"""
"""Records that readers of committed records see, in partitions that such a group has consumed. The
output is one that these readers see, of a transaction that moved the group or an unknown one."""

OUTPUT_REMOVED = """EXISTS (SELECT 1 FROM records outputs JOIN partitions
  ON partitions.p = outputs.sent_p
  WHERE outputs.source = records.value_id
    AND (partitions.compacted = 1 OR COALESCE(outputs.ack_off, 0) < partitions.log_start
    OR (outputs.log_slots > 0 AND outputs.rc_asked = 0)))"""
"""An output of the record may exist where no final reader can receive it: below the log start, in a
compacted topic, or without a final pass of readers of committed records."""

SPOILT_NS = """(SELECT MAX(losses_ns) FROM partitions
  WHERE copies = 1 OR topic IN ('__consumer_offsets', '__transaction_state')
    OR p IN (SELECT sent_p FROM records WHERE source IS NOT NULL))"""
"""Until this time settings or faults may have destroyed outputs, positions or decisions."""

_WRONG = f"""
{INPUTS} AND ((records.shown_slot % {SLOT} < positions.position AND outputs.source IS NULL
               AND NOT {OUTPUT_REMOVED})
  OR (outputs.source IS NOT NULL AND records.shown_slot % {SLOT} >= COALESCE(positions.position,
      0)))
"""


def _explain(row: Mapping[str, Any]) -> str:
    position = f"{row['grp']} stands at {row['position']}"
    if row["sub_kind"] == "consumed":
        return f"{position}, past {row['value_id']} at {place(row)}, of which there is no output."
    return (
        f"{row['value_id']} at {place(row)} has its output ({row['client']}, transaction "
        f"{row['txn']}), yet {position} and will read it again."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """The position of a group that moves with transactions is behind exactly those inputs that have
    an output."""
    for position in history.derived_rows("group_positions"):
        for send, offset, has_output in inputs_of(history, position):
            is_passed = offset < (position.position or 0)
            kind = None
            if has_output and not is_passed:
                kind = "not consumed"
            elif is_passed and not has_output and not is_output_removed(history, send):
                kind = "consumed"
            if kind:
                partition = history.partition_of(send)
                yield partition.violation(kind, offset, send.value_id, position.grp)


def inputs_of(history: SmallHistory, position: Row) -> Iterator[tuple[Row, int, bool]]:
    """The records of a partition that readers of committed records see, each with its offset and
    whether they see an output of a transaction that moved the group of this position."""
    groups = {(row.client, row.session, row.txn): row.grp for row in history.derived_rows("txn_p")}
    partition = history.partition_by_p.get(position.p)
    for send in () if partition is None or partition.part.compacted else partition.sends:
        if is_shown(history, send):
            outputs = [
                output
                for output in history.outputs_of[send.value_id]
                if is_shown(history, output)
                and groups.get((output.client, output.session, output.txn)) in (None, position.grp)
            ]
            yield send, history.seen_places(send.value_id)[0][2], bool(outputs)


def is_shown(history: SmallHistory, send: Row) -> bool:
    """Whether a final pass of readers of committed records delivered a record."""
    return any(
        final_pass.has_delivered(offset, send.value_id)
        for (_, _, offset), passes in history.committed_passes_over(send).items()
        for final_pass in passes
    )


def is_output_removed(history: SmallHistory, send: Row) -> bool:
    """Whether an output was where no final reader of committed records can receive it."""
    for output in history.outputs_of[send.value_id]:
        part = history.partition_of(output).part
        is_unread = history.records_of[output.value_id] and not history.committed_passes_over(
            output
        )
        if part.compacted or (acknowledged_offset(output) or 0) < part.log_start or is_unread:
            return True
    return False


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
    occasion=Occasion.PIPELINE,
    opportunities=f"SELECT COUNT(*) AS n {INPUTS}",
    violations=f"""
SELECT CASE WHEN outputs.source IS NULL THEN 'consumed' ELSE 'not consumed' END AS sub_kind,
  positions.p, records.shown_slot % {SLOT} AS off, records.invoke_ns AS at_ns,
  positions.fetched_ns AS until_ns, positions.grp, records.value_id, positions.position,
  outputs.client, outputs.txn, (SELECT MAX(late) FROM txn_p) AS late,
  CASE WHEN records.invoke_ns < partitions.losses_ns OR records.invoke_ns < {SPOILT_NS} THEN 1
       ELSE 0 END AS spoiled
{_WRONG}""",
    excuses=EXCUSES,
    explain=_explain,
    tie="finding.value_id, finding.grp",
    compares_times=True,
    needs=("txns", "sends", "commits", "commit_reads", "passes"),
    reads=("records", "partitions", "txn_p", "group_positions", "partitions.losses_ns"),
    rests_on=(*RECORDS, "txns", "commits", "commit_reads"),
    reference=_reference,
    reference_subject="violation.grp",
)
