"""The final passes reach every acknowledged offset.

A final pass that stopped before the end that its leader reported is a reason for UNKNOWN, never
a finding. A leader whose own end lies below an acknowledged offset hides or lost that record.
The same applies to a leader that reports a log start above the offset while every replica's log
begins at or below it and no administrator deleted records. At no time does a leader report a log
start above that of all logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, count_records, place
from urteil.harness.verify.guarantees.delivery.lost_write import LOSABLE, UNCLEAN_FLOOR
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset

_JUDGED = """
FROM records JOIN partitions ON records.sent_p = partitions.p
WHERE records.sent = 1 AND records.outcome = 'ok' AND records.ack_off IS NOT NULL
  AND partitions.seen_end IS NOT NULL AND partitions.ends_known = 1
"""

BEYOND = """(records.ack_off >= partitions.seen_end AND records.seen_slots = 0
  AND (partitions.has_log = 1 OR records.complete_ns < partitions.ends_known_ns))"""
"""The offset is at or beyond an end that was requested after its acknowledgement."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "told too late":
        return (
            f"Broker {row['node']} reported that {row['topic']}-{row['partition']} begins at "
            f"{row['late_pass_begin']}, although every replica's log still begins at {row['off']}."
        )
    acknowledged = f"{row['value_id']} was acknowledged at {place(row)}"
    if row["sub_kind"] == "before the begin":
        return (
            f"{acknowledged} and lies in the final leader's log, but a final pass received "
            f"{row['late_pass_begin']} as the partition's log start."
        )
    return f"{acknowledged}, but no final pass received an end beyond {row['seen_end']}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A record that was acknowledged before the last final pass is below the end of one of them, or
    in one.

    Left out: the begin of a log.
    """
    for partition in history.partitions:
        ends = [final_pass.row.to_offset for final_pass in partition.final_passes]
        for send in partition.sends if ends else ():
            offset, reads = acknowledged_offset(send), history.final_reads_of[send.value_id]
            if offset is not None and offset >= max(ends) and not reads:
                yield partition.violation("beyond the end", offset, send.value_id)


GUARANTEE = Guarantee(
    name="unseen",
    rank=20,
    about="an acknowledged record lies outside the range that final passes reported",
    promise="Consumers receive every committed message of a partition up to its end.",
    source="Kafka documentation, 4.7 Replication; KIP-207",
    sub_kinds={
        "beyond the end": (
            "the offset is at or beyond every end that final passes got, and was acknowledged "
            "before"
        ),
        "before the begin": (
            "it is below the begin that a final pass got, though the final leader's log has it"
        ),
        "told too late": "at any time, a leader returned a begin above that of all logs",
    },
    not_counted=(
        "The begin, where logs begin at several offsets or an administrator deleted records.",
        "`told too late` in compacted topics, and where a disk lost records.",
        "If a final pass stopped short, the guarantee is unknown.",
    ),
    unused_evidence=(
        "Readers that received a record of unknown outcome at or beyond the end of the "
        "final passes.",
    ),
    opportunities=count_records(_JUDGED),
    violations=f"""
SELECT CASE WHEN unseen_records.ack_off < unseen_records.late_pass_begin THEN 'before the begin'
    ELSE 'beyond the end' END AS sub_kind, unseen_records.p, unseen_records.ack_off AS off,
    unseen_records.invoke_ns AS at_ns, unseen_records.complete_ns AS until_ns,
    unseen_records.value_id, unseen_records.client, unseen_records.acks, unseen_records.seen_end,
    unseen_records.late_pass_begin, unseen_records.unclean_on, unseen_records.n_reads,
    CASE WHEN unseen_records.ack_off < unseen_records.late_pass_begin THEN unseen_records.log_slots
         ELSE 0 END AS log_slots,
  COALESCE(floors.any_floor, 0) AS any_floor,
  {UNCLEAN_FLOOR.format("unseen_records")} AS unclean_floor, floors.lost_floor,
  CAST(NULL AS INT) AS node
FROM (SELECT records.*, partitions.seen_end, partitions.late_pass_begin, partitions.unclean_on,
        partitions.unclean_floor AS least_floor,
        partitions.losses_ns {_JUDGED.replace("FROM records", "FROM irregular_values records")}
        AND ({BEYOND}
          OR (records.ack_off < partitions.late_pass_begin
            AND records.log_slots > 0))) unseen_records
LEFT JOIN floors ON floors.p = unseen_records.p AND unseen_records.invoke_ns >= floors.from_ns
  AND unseen_records.invoke_ns < floors.to_ns
UNION ALL
SELECT 'told too late', answers.p, partitions.common_start, MIN(answers.invoke_ns),
  MIN(answers.complete_ns), NULL, NULL, NULL, NULL, answers.offset, 0, 0, 1, 0, 0, NULL,
  answers.node
FROM answers JOIN partitions ON partitions.p = answers.p
WHERE answers.kind = 'earliest' AND answers.error IS NULL
  AND answers.offset > partitions.common_start AND partitions.compacted = 0
  AND partitions.log_end > partitions.common_start AND partitions.in_run = 1
  AND answers.offset <> COALESCE(partitions.late_pass_begin, -1)
GROUP BY answers.p, partitions.common_start, answers.offset, answers.node""",
    excuses=LOSABLE,
    explain=_explain,
    tie="finding.value_id, finding.late_pass_begin, finding.node",
    excused_by_times=True,
    needs=("sends", "passes"),
    reads=(
        "irregular_values",
        "record_counts",
        "partitions",
        "answers",
        "floors",
        "partitions.late_pass_begin",
        "partitions.losses_ns",
    ),
    rests_on=("sends", "passes", "logs", "states", "admin_ops"),
    subjects=("partitions.ends_known", "answers"),
    needs_complete_passes=True,
    reference=_reference,
    reference_covers=("beyond the end",),
)
