"""A reader of committed records receives no record before its commit was requested.

Nor does such a reader receive an end beyond a record whose commit was not requested yet: the
reader would take that position for one before which no record can appear."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, place
from urteil.harness.verify.guarantees.transactions.torn_txn import EXCUSES, OF_TXN, SPOILS

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
)
