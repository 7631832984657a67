"""A reader of committed records receives no record before its commit was requested.

Nor does such a reader receive an end beyond a record whose commit was not requested yet: the
reader would take that position for one before which no record can appear."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.verify.guarantees.base import Guarantee, place
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
JOIN reads r ON r.value_id = v.value_id
JOIN clients c ON c.client = r.client AND c.session = r.session
WHERE c.isolation = 'read_committed'
"""

_FIRST = f"""
SELECT v.sent_p AS p, t.client, t.txn, t.tid, t.commit_ns, MIN(v.ack_off) AS off,
  MIN(v.complete_ns) AS acked_ns, MAX(t.late) AS late, {SPOILS} AS spoiled
FROM {OF_TXN}
WHERE v.outcome = 'ok' AND v.ack_off IS NOT NULL AND t.fate = 'committed'
GROUP BY v.sent_p, t.client, t.txn, t.tid, t.commit_ns
"""
"""The first record of a committed transaction in each partition, acknowledged at `acked_ns` at the
earliest."""

_TOLD = f"""
FROM ({_FIRST}) f JOIN answers a ON a.p = f.p
WHERE a.kind = 'stable' AND a.error IS NULL AND a.offset >= 0
  AND a.invoke_ns > f.acked_ns AND a.complete_ns < f.commit_ns
"""


def _explain(row: Mapping[str, Any]) -> str:
    whose = f"transaction {row['txn']} of {row['client']} ({row['tid']})"
    if row["sub_kind"] == "end":
        return (
            f"Broker {row['reader']} returned {row['told']} as the end for readers of committed "
            f"records, beyond {place(row)} of {whose}, whose commit was requested later."
        )
    return (
        f"{row['reader']}, which reads only committed records, received {row['value_id']} at "
        f"{place(row)} before the commit of {whose} was requested."
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
    """Partitions of which an end beyond the first record was answered too early."""
    for where in sorted({(send.topic, chosen_partition(send)) for send in sends}):
        partition = history.partition_at[where]
        own = [send for send in sends if (send.topic, chosen_partition(send)) == where]
        own = [send for send in own if acknowledged_offset(send) is not None]
        if not own:
            continue
        first = min(int(send.offset) for send in own)
        known_ns = min(send.complete_ns for send in own)
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
    requires=(TRANSACTIONS,),
    opportunities=f"SELECT COUNT(*) AS n {_READ}",
    violations=f"""
SELECT 'record' AS sub_kind, v.sent_p AS p, r.offset AS off, MIN(v.invoke_ns) AS at_ns,
  MIN(r.read_ns) AS until_ns, t.client, t.txn, t.tid, v.value_id, MIN(r.client) AS reader,
  CAST(NULL AS BIGINT) AS told, MAX(t.late) AS late, {SPOILS} AS spoiled
{_READ} AND r.read_ns < t.commit_ns
GROUP BY v.sent_p, r.offset, t.client, t.txn, t.tid, v.value_id
UNION ALL
SELECT 'end', f.p, f.off, MIN(a.invoke_ns), MIN(a.complete_ns), f.client, f.txn, f.tid,
  CAST(NULL AS STRING), CAST(MIN(a.node) AS STRING), MAX(a.offset), MAX(f.late), MAX(f.spoiled)
{_TOLD} AND a.offset > f.off
GROUP BY f.p, f.off, f.client, f.txn, f.tid""",
    excuses=EXCUSES,
    explain=_explain,
    tie="j.client, j.txn",
    compares_times=True,
    needs=("txns", "sends", "reads"),
    reads=("vals", "parts", "answers", "txn_p", "clients", "reads", "parts.spoilt_ns"),
    rests_on=("txns", "sends", "reads", "clients", "offset_answers"),
    reference=_reference,
)
