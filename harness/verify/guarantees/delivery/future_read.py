"""No record is read before it was sent.

Only the end of a poll is known. A read is therefore a violation only if its poll returned before
the send was invoked or, for readers of committed records, before the commit was. It is permitted
where the end of an earlier transaction may have reached this one."""

from __future__ import annotations

from collections.abc import Iterator

from urteil.harness.verify.guarantees.base import SLOT, Guarantee, numbered, place
from urteil.harness.verify.guarantees.transactions.torn_txn import EXCUSES, OF_TXN, SPOILS
from urteil.harness.verify.reference import SmallHistory, Violation

_JUDGED = "FROM vals v WHERE v.sent = 1 AND v.n_reads > 0"


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
    opportunities=numbered(_JUDGED),
    violations=f"""
SELECT 'before its send' AS sub_kind, v.read_slot DIV {SLOT} AS p, v.read_slot % {SLOT} AS off,
  v.read_ns AS at_ns, v.invoke_ns AS until_ns, v.value_id, v.client, v.read_ns, v.invoke_ns,
  0 AS late, 0 AS spoiled
FROM irregular_values v WHERE v.sent = 1 AND v.n_reads > 0 AND v.read_ns < v.invoke_ns
UNION ALL
SELECT 'before its commit', v.read_slot DIV {SLOT}, v.read_slot % {SLOT}, MIN(r.read_ns),
  MIN(t.commit_ns), v.value_id, v.client, MIN(r.read_ns), MIN(t.commit_ns), MAX(t.late), {SPOILS}
FROM {OF_TXN}
JOIN reads r ON r.value_id = v.value_id
JOIN clients c ON c.client = r.client AND c.session = r.session
WHERE c.isolation = 'read_committed' AND r.read_ns < t.commit_ns
GROUP BY v.read_slot, v.value_id, v.client""",
    excuses=EXCUSES,
    explain=lambda row: (
        f"{row['value_id']} was read at {place(row)} "
        f"{(row['invoke_ns'] - row['read_ns']) / 1e6:.3f} ms "
        f"{'before it was sent' if row['sub_kind'] == 'before its send' else row['sub_kind']}."
    ),
    compares_times=True,
    needs=("sends", "reads"),
    reads=(
        "vals",
        "irregular_values",
        "kinds",
        "parts",
        "txn_p",
        "clients",
        "reads",
        "parts.spoilt_ns",
    ),
    rests_on=("sends", "reads", "txns", "clients"),
    reference=_reference,
    reference_covers=("before its send",),
)
