"""A reader of committed records receives no record before its commit was requested.

Nor does such a reader receive an end beyond a record whose commit was not requested yet: the reader
would assume that no further record can appear before that position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.guarantees.transactions.torn_txn import EXCUSES, OF_TXN, SPOILS
from urteil.harness.verify.reference import (
    Row,
    SmallHistory,
    Violation,
    acknowledged_offset,
    chosen_partition,
)

_READ = f"""
FROM {OF_TXN}
JOIN reads ON reads.value_id = records.value_id
JOIN clients ON clients.client = reads.client AND clients.session = reads.session
WHERE clients.isolation = 'read_committed'
"""

_FIRST = f"""
SELECT records.sent_p AS p, transactions.client, transactions.txn, transactions.tid,
  transactions.commit_ns, MIN(records.ack_off) AS off, MIN(records.complete_ns) AS acked_ns,
  MAX(transactions.late) AS late, {SPOILS} AS spoiled
FROM {OF_TXN}
WHERE records.outcome = 'ok' AND records.ack_off IS NOT NULL AND transactions.fate = 'committed'
GROUP BY records.sent_p, transactions.client, transactions.txn, transactions.tid,
  transactions.commit_ns
"""
"""The first record of a committed transaction in each partition, acknowledged at `acked_ns` at the
earliest."""

_END_ANSWERS = f"""
FROM ({_FIRST}) first_records JOIN answers ON answers.p = first_records.p
WHERE answers.kind = 'stable' AND answers.error IS NULL AND answers.offset >= 0
  AND answers.invoke_ns > first_records.acked_ns AND answers.complete_ns < first_records.commit_ns
"""


def _explain(row: Mapping[str, Any]) -> str:
    transaction = f"transaction {row['txn']} of {row['client']} ({row['tid']})"
    if row["sub_kind"] == "end":
        broker = "A broker" if row["reader"] is None else f"Broker {row['reader']}"
        return (
            f"{broker} returned {row['told']} as the end for readers of committed "
            f"records, beyond {place(row)} of {transaction}, whose commit was requested later."
        )
    return (
        f"{row['reader']}, which reads only committed records, received {row['value_id']} at "
        f"{place(row)} before the commit of {transaction} was requested."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No reader of committed records received a record before the commit of its transaction was
    requested, or an end beyond it."""
    for txn in history.txns:
        if txn.commit_invoke_ns is None:
            continue
        sends = history.sends_in(txn)
        for send in sends:
            for read in history.reads_of[send.value_id]:
                is_bound = (read.client, read.session) in history.readers_of_committed
                if is_bound and read.read_ns < txn.commit_invoke_ns:
                    yield Violation(
                        "record", send.topic, chosen_partition(send), read.offset, send.value_id
                    )
        if txn.outcome == "committed":
            yield from _answered_ends(history, txn, sends)


def _answered_ends(history: SmallHistory, txn: Row, sends: list[Row]) -> Iterator[Violation]:
    """Partitions for which an end beyond the first record was answered too early."""
    for where in sorted({(send.topic, chosen_partition(send)) for send in sends}):
        partition = history.partition_at[where]
        sends_there = [send for send in sends if (send.topic, chosen_partition(send)) == where]
        sends_there = [send for send in sends_there if acknowledged_offset(send) is not None]
        if not sends_there:
            continue
        first = min(int(send.offset) for send in sends_there)
        known_ns = min(send.complete_ns for send in sends_there)
        for answer in partition.offset_answers:
            is_stable = "stable" in answer.query and answer.error is None
            is_early = known_ns < answer.invoke_ns and answer.complete_ns < txn.commit_invoke_ns
            if is_stable and is_early and answer.offset > first:
                yield partition.violation("end", first)


GUARANTEE = Guarantee(
    name="precommitted_read",
    rank=20,
    about="a record was read as committed before its commit was requested",
    promise="In read_committed mode the consumer reads only those transactional messages which "
    "have been successfully committed.",
    source="KafkaConsumer, Reading Transactional Messages; KIP-98",
    sub_kinds={
        "record": "a reader of committed records got a record before its commit was requested",
        "end": (
            "ListOffsets returned to such readers an end beyond a record of a transaction whose "
            "commit was requested later"
        ),
    },
    unused_evidence=(
        "Ends beyond a transaction that was aborted, or whose end is unknown: its "
        "coordinator may have aborted it before.",
    ),
    requires=(TRANSACTIONS,),
    occasion=Occasion.TRANSACTIONS,
    opportunities=f"SELECT COUNT(*) AS n {_READ}",
    violations=f"""
SELECT 'record' AS sub_kind, records.sent_p AS p, reads.offset AS off,
  MIN(records.invoke_ns) AS at_ns, MIN(reads.read_ns) AS until_ns, transactions.client,
  transactions.txn, transactions.tid, records.value_id, MIN(reads.client) AS reader,
  CAST(NULL AS BIGINT) AS told, MAX(transactions.late) AS late, {SPOILS} AS spoiled
{_READ} AND reads.read_ns < transactions.commit_ns
GROUP BY records.sent_p, reads.offset, transactions.client, transactions.txn, transactions.tid,
  records.value_id
UNION ALL
SELECT 'end', first_records.p, first_records.off, MIN(answers.invoke_ns), MIN(answers.complete_ns),
  first_records.client, first_records.txn, first_records.tid, CAST(NULL AS STRING),
  CAST(MIN(answers.node) AS STRING), MAX(answers.offset), MAX(first_records.late),
  MAX(first_records.spoiled)
{_END_ANSWERS} AND answers.offset > first_records.off
GROUP BY first_records.p, first_records.off, first_records.client, first_records.txn,
  first_records.tid""",
    excuses=EXCUSES,
    explain=_explain,
    tie="finding.client, finding.txn",
    compares_times=True,
    needs=("txns", "sends", "reads"),
    reads=("records", "partitions", "answers", "txn_p", "clients", "reads", "partitions.losses_ns"),
    rests_on=("txns", "sends", "reads", "clients", "offset_answers"),
    reference=_reference,
)
