"""A record of a send that certainly failed is never readable, and a record of an aborted
transaction is never readable under read_committed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.verify.guarantees.base import SLOT, Guarantee, Occasion, place
from urteil.harness.verify.guarantees.transactions.torn_txn import SPOILED
from urteil.harness.verify.limits import ENDED
from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.reference import SmallHistory, Violation, place_of, places_of

_ABORTED = f"""
FROM ({ENDED}) ended_records
JOIN records ON records.value_id = ended_records.value_id
JOIN partitions ON partitions.p = ended_records.p
JOIN reads ON reads.value_id = ended_records.value_id AND reads.topic_id = partitions.topic_id
  AND reads.partition = partitions.partition AND reads.offset = ended_records.off
JOIN clients ON clients.client = reads.client AND clients.session = reads.session
LEFT JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
WHERE ended_records.marks = 1 AND ended_records.ended >= 4 AND clients.isolation = 'read_committed'
"""
"""Reads under read_committed of records whose producer's next marker in the log is an abort. (What
an application copied in vain has its value again, where it was copied once more.) Where its own
marker was lost, a later one of that producer ends it: of an application's transactions nobody knows
when they began, but for that."""

_CLEANED = """
FROM records JOIN partitions ON partitions.p = records.sent_p
JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
WHERE partitions.compacted = 1 AND transactions.fate = 'aborted' AND transactions.late = 0
  AND records.rc_shown = 1
"""
"""Shown by a final pass over a compacted log, which may have no marker of it any more."""

_GONE = """
FROM records JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
JOIN reads ON reads.value_id = records.value_id
JOIN partitions ON partitions.topic_id = reads.topic_id AND partitions.partition = reads.partition
JOIN clients ON clients.client = reads.client AND clients.session = reads.session
WHERE transactions.fate = 'aborted' AND transactions.late = 0
  AND clients.isolation = 'read_committed' AND (records.log_slots = 0 OR partitions.has_log = 0)
"""
"""Reads under read_committed of records whose client never requested the commit of their
transaction, where the final log does not have them any more, or is unknown."""

_JUDGED = (
    "FROM irregular_values records WHERE records.sent = 1 AND records.outcome = 'fail' "
    "AND records.ambiguous = 0"
)


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "aborted transaction":
        return (
            f"{row['client']}, which reads committed records only, was given {row['value_id']} at "
            f"{place(row)}, whose transaction was aborted."
        )
    if row["sub_kind"] == "aborted and gone":
        return (
            f"{row['client']}, which reads committed records only, was given {row['value_id']} at "
            f"{place(row)}, whose client aborted its transaction; the final log has it no more."
        )
    if row["sub_kind"] == "aborted and cleaned":
        return (
            f"{row['value_id']} at {place(row)} was aborted by {row['client']}, yet a reader of "
            "committed records was given it in the end."
        )
    why = f" with {row['error']}" if row["error"] not in (None, "fail") else ""
    seen = ((row["n_reads"], "read"), (row["copies"], "replica"))
    where = " and ".join(count_text(number, noun) for number, noun in seen if number)
    return f"{row['value_id']} failed{why}, yet it is at {place(row)}: in {where}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """What certainly failed is nowhere, and no reader of committed records receives a record whose
    producer's next marker is an abort, or that its client aborted and the final log has no more.

    Left out: records in the final log of aborted transactions whose marker was cleaned.
    """
    for send in history.sends:
        reads, copies = history.reads_of[send.value_id], history.copies_of[send.value_id]
        if send.outcome == "fail" and not send.ambiguous and (reads or copies):
            topic, partition, offset = min(map(place_of, reads + copies))
            kind = "read" if reads else "on disk"
            yield Violation(kind, topic, partition, offset, send.value_id)
        is_aborted = history.fate_of(send) == "aborted" and not history.may_end_late(send)
        if is_aborted and not history.records_of[send.value_id]:
            readers = history.readers_of_committed
            received = [read for read in reads if (read.client, read.session) in readers]
            for place_of_read in places_of(received):
                yield Violation("aborted and gone", *place_of_read, send.value_id)
    for partition_logs in history.partitions:
        for n, record in enumerate(partition_logs.log):
            if not record.transactional or record.control or record.value_id is None:
                continue
            ends = (row.control for row in partition_logs.log[n:]
                    if row.control and row.producer_id == record.producer_id)  # fmt: skip
            mark = (record.offset, record.value_id)
            readers = {(read.client, read.session) for read in partition_logs.reads
                       if (read.offset, read.value_id) == mark}  # fmt: skip
            if next(ends, None) == "abort" and readers & history.readers_of_committed:
                yield partition_logs.violation("aborted transaction", *mark)


GUARANTEE = Guarantee(
    name="aborted_read",
    rank=70,
    about="a record whose send certainly failed is visible",
    promise="A request that is answered with an error that rules out its append is not appended.",
    source="Kafka protocol guide, Error Codes; KAFKA-13574 for those that rule out nothing",
    sub_kinds={
        "read": "a reader received a record of a failed send",
        "on disk": "a log holds a record of a failed send",
        "aborted transaction": "a reader of committed records received an aborted record",
        "aborted and cleaned": "the same in a compacted topic, whose marker may be cleaned",
        "aborted and gone": (
            "a reader of committed records received a record whose client aborted its "
            "transaction, and which the final log does not have any more"
        ),
    },
    details=(
        "Judged are sends that certainly failed, and records whose producer's next marker is an "
        "abort. In compacted topics the transaction itself must have been aborted, and the final "
        "reads decide.",
        "Of records that the final log has no more, their client's own end of the transaction "
        "decides: every read under read_committed counts.",
    ),
    not_counted=(
        "Sends with an ambiguous attempt.",
        "Transactions that began before all brokers knew of an unclean election or of a disk that "
        "lost records, or at an unknown time (permitted): their markers may be lost, and their "
        "producer's next marker ends them.",
    ),
    requires=(TRANSACTIONS,),
    occasion=Occasion.FAILED_SENDS,
    opportunities=f"""
SELECT COUNT(*) + (SELECT COUNT(*) FROM slots WHERE on_leader = 1 AND marks = 1) AS n
{_JUDGED}""",
    violations=f"""
SELECT CASE WHEN records.n_reads > 0 THEN 'read' ELSE 'on disk' END AS sub_kind,
  records.shown_slot DIV {SLOT} AS p,
  records.shown_slot % {SLOT} AS off, records.invoke_ns AS at_ns, records.complete_ns AS until_ns,
  records.value_id, records.client, records.error, records.n_reads, records.copies, 0 AS spoiled
{_JUDGED} AND records.shown_slot IS NOT NULL
UNION ALL
SELECT 'aborted transaction', ended_records.p, ended_records.off, MIN(records.invoke_ns),
  MIN(reads.read_ns), ended_records.value_id, MIN(reads.client), 'an abort marker', COUNT(*), 0,
  MAX(CASE WHEN COALESCE(transactions.begin_ns, records.invoke_ns, partitions.spoilt_ns
                         - 1) < partitions.spoilt_ns
    THEN 1 ELSE 0 END) {_ABORTED}
  GROUP BY ended_records.p, ended_records.off, ended_records.value_id
UNION ALL
SELECT 'aborted and cleaned', records.shown_slot DIV {SLOT}, records.shown_slot % {SLOT},
  records.invoke_ns, records.read_ns, records.value_id,
  records.client, 'an abort', records.n_reads, records.copies,
  CASE WHEN transactions.begin_ns < partitions.spoilt_ns THEN 1 ELSE 0 END {_CLEANED}
UNION ALL
SELECT 'aborted and gone', partitions.p, reads.offset, MIN(records.invoke_ns), MIN(reads.read_ns),
  reads.value_id, MIN(reads.client), 'an abort', COUNT(*), 0,
  MAX(CASE WHEN transactions.begin_ns < partitions.spoilt_ns THEN 1 ELSE 0 END) {_GONE}
  GROUP BY partitions.p, reads.offset, reads.value_id""",
    excuses=(SPOILED,),
    explain=_explain,
    excused_by_times=True,
    reads=(
        "slots",
        "records",
        "irregular_values",
        "partitions",
        "txn_p",
        "clients",
        "reads",
        "partitions.spoilt_ns",
    ),
    rests_on=("sends", "reads", "replicas", "clients", "txns"),
    reference=_reference,
    reference_covers=("read", "on disk", "aborted transaction", "aborted and gone"),
)
