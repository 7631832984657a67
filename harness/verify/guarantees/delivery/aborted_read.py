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
from urteil.harness.verify.reference import Partition, SmallHistory, Violation, place_of

_MARKED = f"""
SELECT ended_records.p, ended_records.off, ended_records.value_id FROM ({ENDED}) ended_records
WHERE ended_records.marks = 1 AND ended_records.ended >= 4
UNION
SELECT copies.p, copies.off, copies.value_id
FROM (SELECT by_marker.p, by_marker.off, by_marker.value_id, MIN(by_marker.control) OVER (
          PARTITION BY by_marker.p, by_marker.broker, by_marker.pid, by_marker.earlier_markers)
          AS control
      FROM (SELECT partitions.p, replicas.broker, replicas.producer_id AS pid,
              replicas.offset AS off, replicas.value_id, replicas.control,
              COALESCE(SUM(CASE WHEN replicas.control IS NULL THEN 0 ELSE 1 END) OVER (
                PARTITION BY partitions.p, replicas.broker, replicas.producer_id
                ORDER BY replicas.offset, CASE WHEN replicas.control IS NULL THEN 0 ELSE 1 END
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS earlier_markers
            FROM replicas JOIN partitions ON partitions.topic_id = replicas.topic_id
              AND partitions.partition = replicas.partition
            WHERE (replicas.transactional OR replicas.control IS NOT NULL)
              AND replicas.broker <> partitions.final_leader) by_marker) copies
JOIN records ON records.value_id = copies.value_id AND records.log_slots = 0
WHERE copies.control = 'abort'
"""
"""Records whose producer's next marker is an abort: in the final leader's log, or in another
replica's log if the final leader no longer has the record (each replica cleans its log itself). If
the marker of a transaction was lost, the producer's next marker ends it: nothing else shows when an
application's transactions began."""

_RECEIVED = """
JOIN reads ON reads.value_id = {0}.value_id
JOIN partitions ON partitions.topic_id = reads.topic_id AND partitions.partition = reads.partition
JOIN clients ON clients.client = reads.client AND clients.session = reads.session
  AND clients.isolation = 'read_committed'
"""

_ABORTED = f"""
FROM ({_MARKED}) marked JOIN records ON records.value_id = marked.value_id
{_RECEIVED.format("marked")} AND partitions.p = marked.p AND reads.offset = marked.off
LEFT JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
"""
"""Reads under read_committed of records with an abort marker. (A repetition of an aborted copy has
the same value.)"""

_OF_ABORTED = """
FROM records JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
  AND transactions.fate = 'aborted' AND transactions.late = 0
"""

_UNMARKED = f"""
{_OF_ABORTED} {_RECEIVED.format("records")}
LEFT JOIN ({_MARKED}) marked ON marked.p = partitions.p AND marked.off = reads.offset
  AND marked.value_id = reads.value_id
WHERE marked.p IS NULL
"""
"""Reads under read_committed of records whose client never requested the commit of their
transaction. The final logs need not have the record or its marker: they may be cleaned or
deleted."""

_JUDGED = (
    "FROM irregular_values records WHERE records.sent = 1 AND records.outcome = 'fail' "
    "AND records.ambiguous = 0"
)


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "aborted transaction":
        return (
            f"{row['client']}, which reads committed records only, received {row['value_id']} at "
            f"{place(row)}, whose transaction was aborted."
        )
    if row["sub_kind"] == "aborted by its client":
        return (
            f"{row['client']}, which reads committed records only, received {row['value_id']} at "
            f"{place(row)}, whose client aborted its transaction; no log has its marker any more."
        )
    why = f" with {row['error']}" if row["error"] not in (None, "fail") else ""
    seen = ((row["n_reads"], "read"), (row["copies"], "replica"))
    where = " and ".join(count_text(number, noun) for number, noun in seen if number)
    return f"{row['value_id']} failed{why}, yet it is at {place(row)}: in {where}."


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A record whose send certainly failed is nowhere, and no reader of committed records receives
    a record whose producer's next marker is an abort, or whose client aborted its transaction."""
    for send in history.sends:
        reads, copies = history.reads_of[send.value_id], history.copies_of[send.value_id]
        if send.outcome == "fail" and not send.ambiguous and (reads or copies):
            topic, partition, offset = min(map(place_of, reads + copies))
            kind = "read" if reads else "on disk"
            yield Violation(kind, topic, partition, offset, send.value_id)
    aborted = {
        send.value_id
        for send in history.sends
        if history.fate_of(send) == "aborted" and not history.may_end_late(send)
    }
    for here in history.partitions:
        marked = {*_aborted_records(here)}
        received = {
            (read.offset, read.value_id)
            for read in here.reads
            if (read.client, read.session) in history.readers_of_committed
        }
        for offset, value in received:
            if (offset, value) in marked:
                yield here.violation("aborted transaction", offset, value)
            elif value in aborted:
                yield here.violation("aborted by its client", offset, value)


def _aborted_records(partition: Partition) -> Iterator[tuple[int, str]]:
    """Offset and value of each record whose producer's next marker is an abort: in the final
    leader's log, and in other logs if the final leader no longer has the record."""
    for broker in {row.broker for row in partition.replicas}:
        rows = partition.log_of(broker)
        for n, record in enumerate(rows):
            if not record.transactional or record.control or record.value_id is None:
                continue
            is_kept = bool(partition.history.records_of[record.value_id])
            ends = (row.control for row in rows[n:]
                    if row.control and row.producer_id == record.producer_id)  # fmt: skip
            if (broker == partition.final_leader or not is_kept) and next(ends, None) == "abort":
                yield record.offset, record.value_id


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
        "aborted by its client": (
            "a reader of committed records received a record whose client aborted its "
            "transaction, and of whose marker no log knows"
        ),
    },
    details=(
        "Judged are sends that certainly failed, records whose producer's next marker is an abort, "
        "and records whose client never requested the commit of their transaction.",
        "Every read under read_committed counts, whatever the logs have in the end: a cleaner or "
        "retention may have taken the record. A marker in any replica's log proves the abort of "
        "what the final leader has no more.",
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
SELECT COUNT(*) + (SELECT COUNT(*) FROM slots WHERE on_leader = 1 AND marks = 1)
  + (SELECT COUNT(*) {_OF_ABORTED}) AS n
{_JUDGED}""",
    violations=f"""
SELECT CASE WHEN records.n_reads > 0 THEN 'read' ELSE 'on disk' END AS sub_kind,
  records.shown_slot DIV {SLOT} AS p,
  records.shown_slot % {SLOT} AS off, records.invoke_ns AS at_ns, records.complete_ns AS until_ns,
  records.value_id, records.client, records.error, records.n_reads, records.copies, 0 AS spoiled
{_JUDGED} AND records.shown_slot IS NOT NULL
UNION ALL
SELECT 'aborted transaction', marked.p, marked.off, MIN(records.invoke_ns),
  MIN(reads.read_ns), marked.value_id, MIN(reads.client), 'an abort marker', COUNT(*), 0,
  MAX(CASE WHEN COALESCE(transactions.begin_ns, records.invoke_ns, partitions.losses_ns
                         - 1) < partitions.losses_ns
    THEN 1 ELSE 0 END) {_ABORTED}
  GROUP BY marked.p, marked.off, marked.value_id
UNION ALL
SELECT 'aborted by its client', partitions.p, reads.offset, MIN(records.invoke_ns),
  MIN(reads.read_ns), reads.value_id, MIN(reads.client), 'an abort', COUNT(*), 0,
  MAX(CASE WHEN transactions.begin_ns < partitions.losses_ns THEN 1 ELSE 0 END) {_UNMARKED}
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
        "replicas",
        "partitions.losses_ns",
    ),
    rests_on=("sends", "reads", "replicas", "clients", "txns"),
    reference=_reference,
)
