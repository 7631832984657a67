"""No record is read before it was sent.

Only the end of a poll is known. A read is therefore a violation only if its poll returned before
the send was invoked or, for readers of committed records, before the commit was. It is permitted
where a delayed EndTxn of an earlier transaction may have ended this one."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, count_records, place
from urteil.harness.verify.guarantees.transactions.torn_txn import EXCUSES, OF_TXN, SPOILS
from urteil.harness.verify.reference import SmallHistory, Violation

_JUDGED = "FROM records WHERE records.sent = 1 AND records.n_reads > 0"


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No poll that returned a record ended before its send began.

    Left out: commits of transactions.
    """
    for send in history.sends:
        reads = history.reads_of[send.value_id]
        if reads and min(read.read_ns for read in reads) < send.invoke_ns:
            first = reads[0]
            yield Violation(
                "before its send", first.topic, first.partition, first.offset, send.value_id
            )


GUARANTEE = Guarantee(
    name="future_read",
    rank=60,
    about="a record was read before it was sent",
    promise="A consumer receives what producers have published.",
    source="Kafka documentation, 1.1 Introduction; causality under one monotonic clock",
    sub_kinds={
        "before its send": "a poll returned the record before its send was invoked",
        "before its commit": "a reader of committed records got it before its commit was requested",
    },
    not_counted=(
        "`before its commit` where a delayed EndTxn may have arrived.",
        "`before its commit` until all brokers know of an unclean election, or of a disk that "
        "lost records (permitted).",
    ),
    opportunities=count_records(_JUDGED),
    violations=f"""
SELECT 'before its send' AS sub_kind, read_slot DIV {SLOT} AS p, read_slot % {SLOT} AS off,
  read_ns AS at_ns, invoke_ns AS until_ns, value_id, client, read_ns, invoke_ns,
  0 AS late, 0 AS spoiled
FROM irregular_values WHERE sent = 1 AND n_reads > 0 AND read_ns < invoke_ns
UNION ALL
SELECT 'before its commit', records.read_slot DIV {SLOT}, records.read_slot % {SLOT},
  MIN(reads.read_ns), MIN(transactions.commit_ns), records.value_id, records.client,
  MIN(reads.read_ns), MIN(transactions.commit_ns), MAX(transactions.late), {SPOILS}
FROM {OF_TXN}
JOIN reads ON reads.value_id = records.value_id
JOIN clients ON clients.client = reads.client AND clients.session = reads.session
WHERE clients.isolation = 'read_committed' AND reads.read_ns < transactions.commit_ns
GROUP BY records.read_slot, records.value_id, records.client""",
    excuses=EXCUSES,
    explain=lambda row: (
        f"{row['value_id']} was read at {place(row)} "
        f"{(row['invoke_ns'] - row['read_ns']) / 1e6:.3f} ms "
        f"{'before it was sent' if row['sub_kind'] == 'before its send' else row['sub_kind']}."
    ),
    compares_times=True,
    needs=("sends", "reads"),
    reads=(
        "records",
        "irregular_values",
        "record_counts",
        "partitions",
        "txn_p",
        "clients",
        "reads",
        "partitions.losses_ns",
    ),
    rests_on=("sends", "reads", "txns", "clients"),
    reference=_reference,
    reference_covers=("before its send",),
)
