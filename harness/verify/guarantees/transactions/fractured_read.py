"""A fractured read: a reader received one record of a transaction and not another one.

A reader whose position is before the other record has not read that far yet: markers are not
written to all partitions at one moment. That is counted. A reader of committed records that has
passed over the other record will never receive it, which is a violation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.chaos.capabilities import TRANSACTIONS
from urteil.harness.verify.guarantees.base import SLOT, Excuse, Guarantee, Occasion, place
from urteil.harness.verify.guarantees.delivery.poll_skip import GUARANTEE as POLL_SKIP
from urteil.harness.verify.guarantees.losses import LOSSES
from urteil.harness.verify.guarantees.transactions.isolation import edges, explain_cycle

_PASSED_OVER = f"""
SELECT skips.p, skips.off, skips.at_ns, skips.until_ns, skips.client AS reader,
  skips.session AS reader_session, skips.unclean_on, skips.unclean_floor, skips.lost_floor,
  skips.losses_ns, transactions.client, transactions.session, transactions.txn,
  MIN(others.sent_p * {SLOT} + reads.offset) AS seen_slot, MIN(reads.txn) AS reader_txn
FROM ({POLL_SKIP.violations}) skips
JOIN slots ON slots.p = skips.p AND slots.off = skips.off
JOIN records ON records.value_id = slots.value_id
JOIN txn_p transactions ON transactions.client = records.client
  AND transactions.session = records.session AND transactions.txn = records.txn
  AND transactions.fate = 'committed'
JOIN records others ON others.client = records.client AND others.session = records.session
  AND others.txn = records.txn AND others.value_id <> records.value_id
JOIN reads ON reads.value_id = others.value_id AND reads.client = skips.client
  AND reads.session = skips.session
GROUP BY skips.p, skips.off, skips.at_ns, skips.until_ns, skips.client, skips.session,
  skips.unclean_on, skips.unclean_floor, skips.lost_floor, skips.losses_ns, transactions.client,
  transactions.session, transactions.txn
"""
"""Findings of `poll_skip` whose record belongs to a committed transaction, with the first other
record of it that the same reader received."""


def _explain(row: Mapping[str, Any]) -> str:
    if row["sub_kind"] == "not reached":
        return explain_cycle(row)
    return (
        f"{row['reader']} received a record of transaction {row['txn']} of {row['client']}, and "
        f"passed over its record at {place(row)}: {explain_cycle(row)}"
    )


_WRITER = "CONCAT(torn_reads.client, '/', CAST(torn_reads.txn AS STRING))"
_READER = """CASE WHEN torn_reads.reader_txn IS NULL THEN torn_reads.reader
  ELSE CONCAT(torn_reads.reader, '/', CAST(torn_reads.reader_txn AS STRING)) END"""


def _at(partition: str, offset: str) -> str:
    """The SQL text of a place: topic, partition and offset."""
    return (
        f"{partition}.topic, '-', CAST({partition}.partition AS STRING), '@', "
        f"CAST({offset} AS STRING)"
    )


GUARANTEE = Guarantee(
    name="fractured_read",
    rank=86,
    about="a reader saw one record of a transaction and passed over another one",
    promise="A consumer in read_committed mode receives all messages of a committed transaction in "
    "the partitions that it reads, in the order of their offsets.",
    source="KafkaConsumer, Reading Transactional Messages; KIP-98: Transactional Guarantees. For "
    "`not reached`: Bailis and others, Scalable Atomic Visibility with RAMP Transactions (2014)",
    sub_kinds={
        "passed over": "a reader's position lies behind a record that it never received",
        "not reached": "a transaction's position lies before it, although it read that partition",
    },
    details=(
        "Readers that received a record of a committed transaction. `passed over`: the record is a "
        "finding of `poll_skip`, too.",
    ),
    not_counted=(
        "Positions before the other record (permitted): markers are not written to all partitions "
        "at one moment, and KIP-98 does not promise that a consumer reads all partitions.",
    ),
    requires=(TRANSACTIONS,),
    occasion=Occasion.READING_TRANSACTIONS,
    opportunities=edges("wr", "early"),
    violations=f"""
SELECT 'passed over' AS sub_kind, torn_reads.p, torn_reads.off, torn_reads.at_ns,
  torn_reads.until_ns, 2 AS n,
  CONCAT({_WRITER}, ' -> ', {_READER}, ' -> ', {_WRITER}) AS txns,
  CONCAT('wr ', {_at("seen_places", f"torn_reads.seen_slot % {SLOT}")}, ', rw ',
    {_at("missed_places", "torn_reads.off")}) AS edges,
  torn_reads.reader, torn_reads.client, torn_reads.txn, torn_reads.unclean_on,
  torn_reads.unclean_floor, torn_reads.lost_floor, torn_reads.losses_ns
FROM ({_PASSED_OVER}) torn_reads
JOIN partitions seen_places ON seen_places.p = torn_reads.seen_slot DIV {SLOT}
JOIN partitions missed_places ON missed_places.p = torn_reads.p
UNION ALL
SELECT 'not reached', p, off, at_ns, until_ns, n, txns, edges, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL
FROM cycles WHERE cycles.kind = 'fractured'""",
    excuses=(
        Excuse(
            when="violation.sub_kind = 'not reached'",
            reason="markers are not written to all partitions at one moment",
        ),
        *LOSSES,
    ),
    explain=_explain,
    tie="finding.txns, finding.reader",
    compares_times=True,
    needs=("txns", "sends", "reads"),
    reads=(*POLL_SKIP.reads, "cycles", "graph", "records", "txn_p"),
    rests_on=(*POLL_SKIP.rests_on, "txns", "sends"),
    subjects=("graph",),
    no_reference="Its violations are findings of `poll_skip`, which has a reference check.",
)
