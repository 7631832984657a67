"""If a record survives, so do the records that its client knew when it sent the record.

With acks=all. Violated when a record survives while a record is lost that its client had seen
acknowledged, or had read, before it sent the surviving one."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.guarantees.base import Guarantee, count_records, place
from urteil.harness.verify.guarantees.delivery.lost_write import LOSABLE, LOST
from urteil.harness.verify.reference import SmallHistory, Violation, acknowledged_offset

_LAST = """
SELECT records.client, MAX(records.invoke_ns) AS last_ns FROM records JOIN partitions
  ON partitions.p = records.sent_p
WHERE records.sent = 1 AND records.acks = -1 AND records.log_slots > 0
  AND (partitions.has_log = 1 OR records.read_asked = 0 OR records.seen_slots > 0)
GROUP BY records.client
"""
"""The last surviving record of each client. Without logs a record survives if a reader received it
and all complete passes over its place, if there are any, delivered it."""

_IS_LOST = "(losses.log_slots = 0 OR losses.final_leader IS NULL)"
"""With logs, only records that the log lacks are known losses; without logs, also records that a
reader received once."""

_KNOWN_LOSSES = f"""
SELECT 'acknowledged' AS sub_kind, losses.*, losses.client AS witness, losses.until_ns AS known_ns
FROM ({LOST}) losses WHERE losses.outcome = 'ok' AND losses.acks = -1 AND {_IS_LOST}
UNION ALL
SELECT 'read', losses.*, reads.client, reads.read_ns
FROM ({LOST}) losses JOIN reads ON reads.value_id = losses.value_id WHERE {_IS_LOST}
"""


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No client's record with acks=all survives while a record is lost that the client had seen
    acknowledged, or had read, before it sent its own."""
    survived = {
        (send.client, send.invoke_ns) for send in history.sends
        if send.acks == -1 and history.records_of[send.value_id]
    }  # fmt: skip
    for partition in history.partitions:
        for send in () if partition.is_compacted else partition.sends:
            value, reads = send.value_id, history.reads_of[send.value_id]
            is_due = send.outcome == "ok" or (send.outcome == "info" and reads)
            offset = acknowledged_offset(send)
            if offset is None and reads:
                offset = reads[0].offset
            if history.records_of[value] or not is_due or (offset or 0) < partition.start:
                continue
            known = {("read", read.client, read.read_ns) for read in reads}
            if send.outcome == "ok" and send.acks == -1:
                known.add(("acknowledged", send.client, send.complete_ns))
            for kind, client, at_ns in known:
                if any(sender == client and sent_ns > at_ns for sender, sent_ns in survived):
                    yield partition.violation(kind, offset, value)


GUARANTEE = Guarantee(
    name="causal_loss",
    rank=170,
    about="a record survived, but not one that its client knew before it sent it",
    promise="A committed message is not lost, so a message that was sent in knowledge of it does "
    "not survive alone: causal order holds across partitions.",
    source="Kafka documentation, 4.7 Replication; Jepsen, Kafka: causality of sends",
    sub_kinds={
        "acknowledged": "the client had received the acknowledgement of the lost record",
        "read": "the client had read the lost record",
    },
    details=(
        "A lost record that its client had seen acknowledged with acks=all, or had read, before "
        "it sent one that survives.",
    ),
    not_counted=("What `lost_write` permits.",),
    opportunities=count_records(
        "FROM records WHERE records.sent = 1 AND records.acks = -1 AND records.outcome = 'ok' "
        "AND records.log_slots > 0"
    ),
    violations=f"""
SELECT known_losses.knowledge AS sub_kind, known_losses.p, known_losses.off, known_losses.at_ns,
  MIN(known_losses.known_ns) AS until_ns, known_losses.value_id, known_losses.witness AS client,
  MAX(last_records.last_ns) AS survivor_ns, known_losses.acks, known_losses.n_reads,
  known_losses.log_slots, known_losses.unclean_on, known_losses.any_floor,
  known_losses.unclean_floor, known_losses.lost_floor
FROM ({_KNOWN_LOSSES.replace("AS sub_kind", "AS knowledge", 1)}) known_losses
JOIN ({_LAST}) last_records ON last_records.client = known_losses.witness
  AND last_records.last_ns > known_losses.known_ns
GROUP BY known_losses.knowledge, known_losses.p, known_losses.off, known_losses.at_ns,
  known_losses.value_id, known_losses.witness, known_losses.acks, known_losses.n_reads,
  known_losses.log_slots,
  known_losses.unclean_on, known_losses.any_floor, known_losses.unclean_floor,
    known_losses.lost_floor""",
    excuses=LOSABLE,
    explain=lambda row: (
        f"{row['client']} knew of {row['value_id']} at {place(row)} ({row['sub_kind']}), which is "
        "lost, before it sent records that survive."
    ),
    tie="finding.value_id, finding.client",
    compares_times=True,
    reads=(
        *(
            "slots",
            "records",
            "irregular_values",
            "known_commits",
            "unplaced",
            "record_counts",
            "ticks",
            "partitions",
        ),
        *("floors", "reads", "partitions.flushed_ns", "partitions.losses_ns"),
    ),
    reference=_reference,
)
