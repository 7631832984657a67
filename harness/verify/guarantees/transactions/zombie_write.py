"""A producer that lost its transactional id to another producer writes nothing more.

Another producer owns the id once its InitProducerId was answered; later sends and commits of the
former one must be rejected. In a log the epochs of one producer id never decrease, those of its
markers included: a producer that ends another one's transaction does so in a later epoch.

`same epoch`: a producer received an epoch that another producer with its transactional id and
producer id had before (clients that journal theirs: workloads with `takeovers`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.verify.guarantees.base import EPOCH, SLOT, Guarantee, Occasion, place
from urteil.harness.verify.guarantees.transactions.torn_txn import COORDINATOR, OF_TXN, SPOILED
from urteil.harness.verify.reference import (
    Partition,
    Row,
    SmallHistory,
    Violation,
    acknowledged_offset,
    chosen_partition,
    is_number,
)

_SENT = f"FROM {OF_TXN} WHERE records.sent = 1 AND records.invoke_ns > transactions.fenced_ns"
_ACCEPTED = (
    "(records.outcome = 'ok' OR (records.outcome <> 'fail' AND records.shown_slot IS NOT NULL))"
)
"""The send was acknowledged, or a reader or a log has the record although its answer was lost."""

_LATE_COMMITS = "FROM txn_p transactions WHERE transactions.commit_ns > transactions.fenced_ns"
_FENCED = (
    "FROM txn_p transactions WHERE transactions.outcome = 'fenced' "
    "AND transactions.fenced_ns IS NOT NULL"
)


_INITIALISATIONS = """
(SELECT *, LAG(epoch) OVER (PARTITION BY tid, pid ORDER BY init_ns) AS prev_epoch,
   LAG(init_ns) OVER (PARTITION BY tid, pid ORDER BY init_ns) AS prev_ns
 FROM (SELECT txns.transactional_id AS tid, txns.producer_id AS pid, txns.epoch,
         txns.init_invoke_ns, txns.init_ns,
         MIN(txns.client) AS client, MIN(txns.txn) AS txn
       FROM txns WHERE txns.producer_id >= 0 AND txns.epoch >= 0
       GROUP BY txns.transactional_id, txns.producer_id, txns.epoch, txns.init_invoke_ns,
         txns.init_ns) initialisations)
"""
"""Epochs that InitProducerId returned, each with the previous one."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "older epoch":
        return (
            f"At {place(row)} producer {row['pid']} writes in epoch {row['pepoch']}, after a "
            f"record or marker of its epoch {row['prev_epoch']}."
        )
    if row["sub_kind"] == "same epoch":
        return (
            f"{row['client']} received epoch {row['pepoch']} of producer {row['pid']} for "
            f"{row['tid']}, though another producer had received {row['prev_epoch']} before."
        )
    what = f"{row['value_id']} at {place(row)}" if row["value_id"] else f"transaction {row['txn']}"
    done = "sent" if row["value_id"] else "committed"
    return (
        f"{row['client']} {done} {what}, which was accepted, though another producer had taken "
        f"over its transactional id {row['tid']} before."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Once another producer was initialised with its transactional id, a producer writes and
    commits nothing more; and epochs rise, in a log and from one initialisation to the next."""
    for txn in history.txns:
        fenced_ns = _fenced_ns(history, txn)
        if fenced_ns is None:
            continue
        for send in history.sends_in(txn):
            seen = history.seen_places(send.value_id)
            is_accepted = send.outcome == "ok" or (send.outcome != "fail" and seen)
            if is_accepted and send.invoke_ns > fenced_ns:
                offset = acknowledged_offset(send)
                if offset is None and seen:
                    offset = seen[0][2]
                yield Violation("record", send.topic, chosen_partition(send), offset, send.value_id)
        if txn.outcome == "committed" and (txn.commit_invoke_ns or 0) > fenced_ns:
            yield Violation("commit", None, None, None, None)
    for partition in history.partitions:
        yield from _fallen_epochs(partition)
    for txn, other in product(history.txns, repeat=2):
        same = all(txn[name] == other[name] for name in ("transactional_id", "producer_id"))
        known = is_number(txn.producer_id) and is_number(txn.epoch) and is_number(other.epoch)
        if same and known and None not in (txn.init_ns, other.init_invoke_ns):
            is_next = not any(
                txn.init_ns < third.init_ns < other.init_ns
                for third in history.txns
                if third.transactional_id == txn.transactional_id and third.init_ns is not None
            )
            if is_next and txn.init_ns < other.init_invoke_ns and other.epoch <= txn.epoch:
                yield Violation("same epoch", None, None, None, None)


def _fenced_ns(history: SmallHistory, txn: Row) -> int | None:
    """The time at which another producer was initialised whose request came after the answer to
    this one."""
    return min(
        (
            other.init_ns
            for other in history.txns
            if other.transactional_id == txn.transactional_id
            and None not in (txn.init_ns, other.init_ns, other.init_invoke_ns)
            and other.init_invoke_ns > txn.init_ns
        ),
        default=None,
    )


def _fallen_epochs(partition: Partition) -> Iterator[Violation]:
    """Records of transactions, and markers, behind records or markers of a later epoch of their
    producer."""
    epochs: dict[int, int] = {}
    for row in partition.log:
        is_placed = is_number(row.sequence) or row.control is not None
        if not (row.transactional or row.control) or not is_placed:
            continue
        if row.producer_epoch < epochs.get(row.producer_id, row.producer_epoch):
            yield partition.violation("older epoch", row.offset, row.value_id)
        epochs[row.producer_id] = row.producer_epoch


GUARANTEE = Guarantee(
    name="zombie_write",
    rank=30,
    about="a producer whose transactional id another producer took over could still write",
    promise="If another producer with the same transactional.id is initialised, transactions of "
    "the previous one are finished and it is fenced off.",
    source="KIP-98: Producer Zombies; KafkaProducer.initTransactions",
    sub_kinds={
        "record": (
            "a record of the former producer was acknowledged, or its answer was lost and a reader "
            "or a log has it"
        ),
        "commit": "a commit of the former producer was acknowledged",
        "older epoch": "in a log the epochs of a producer id fall, markers included",
        "same epoch": (
            "a producer got an epoch that another one of its transactional and producer id had "
            "got before (clients that expose theirs)"
        ),
    },
    details=(
        "A send or a commit is accepted that was invoked after another producer with its "
        "transactional id had been initialised.",
    ),
    not_counted=("Initialisations that overlap, and producers that were initialised again.",),
    requires=(TRANSACTIONS,),
    occasion=Occasion.SHARED_TRANSACTIONAL_ID,
    opportunities=f"""
SELECT COUNT(*) + (SELECT COUNT(*) {_LATE_COMMITS}) + (SELECT COUNT(*) {_FENCED})
  + (SELECT COUNT(*) FROM {_INITIALISATIONS} initialisations WHERE prev_ns < init_invoke_ns) AS n
{_SENT}""",
    violations=f"""
SELECT 'record' AS sub_kind, records.sent_p AS p,
  COALESCE(records.ack_off, records.shown_slot % {SLOT}) AS off,
  records.invoke_ns AS at_ns, records.complete_ns AS until_ns, transactions.client,
  transactions.txn, transactions.tid, records.value_id, CAST(NULL AS BIGINT) AS pid,
  CAST(NULL AS BIGINT) AS pepoch, CAST(NULL AS BIGINT) AS prev_epoch,
  CASE WHEN transactions.fenced_ns < partitions.losses_ns THEN 1 ELSE 0 END AS spoiled
{_SENT} AND {_ACCEPTED}
UNION ALL
SELECT 'commit', CAST(NULL AS BIGINT), CAST(NULL AS BIGINT), transactions.commit_ns,
  transactions.end_ns, transactions.client, transactions.txn, transactions.tid, NULL, NULL, NULL,
  NULL, {COORDINATOR}
{_LATE_COMMITS} AND transactions.outcome = 'committed'
UNION ALL
SELECT 'older epoch', p, off, NULL, NULL, NULL, NULL, NULL, value_id, pid, pepoch,
  prev_epoch, GREATEST(spoiled, {COORDINATOR})
FROM (SELECT slots.p, slots.off, slots.value_id, slots.pid, slots.pseq DIV {EPOCH} AS pepoch,
        LAG(slots.pseq DIV {EPOCH}) OVER (PARTITION BY slots.p, slots.pid
            ORDER BY slots.off) AS prev_epoch,
        CASE WHEN partitions.unclean_on = 1 OR partitions.lost_floor IS NOT NULL THEN 1
             ELSE 0 END AS spoiled
      FROM slots JOIN partitions ON partitions.p = slots.p
      WHERE slots.on_leader = 1 AND slots.pseq IS NOT NULL AND slots.marks >= 1) appends
WHERE pepoch < prev_epoch
UNION ALL
SELECT 'same epoch', NULL, NULL, init_invoke_ns, init_ns, client, txn, tid, NULL, pid,
  epoch, prev_epoch, {COORDINATOR}
FROM {_INITIALISATIONS} initialisations WHERE prev_ns < init_invoke_ns AND epoch <= prev_epoch""",
    excuses=(SPOILED,),
    explain=_explain,
    tie="finding.client, finding.txn",
    compares_times=True,
    needs=("txns",),
    reads=(
        *("slots", "records", "partitions", "txn_p"),
        *("txns", "partitions.lost_floor", "partitions.losses_ns"),
        *("partitions.unclean_on",),
    ),
    rests_on=("txns", "sends", "reads", "replicas", "logs"),
    reference=_reference,
)
