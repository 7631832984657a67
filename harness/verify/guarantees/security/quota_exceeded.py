"""Over a longer time, clients write and read no more than the quota of their client id.

Judged by partition and client, in each undisturbed interval of a quota (`quota_limits`): records
that were acknowledged in it, and records that were sent in it and received by the client (records
fetched earlier do not count). Only the size of a record's value is known, so that less is
counted than the broker measures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee

_WRITTEN = """
SELECT r.n, v.sent_p AS p, COUNT(*) AS records
FROM quota_limits r JOIN vals v ON v.client = r.client
WHERE r.kind = 'written' AND v.sent = 1 AND v.outcome = 'ok'
  AND v.complete_ns >= r.from_ns AND v.complete_ns < r.to_ns
GROUP BY r.n, v.sent_p
"""

_READ = """
SELECT r.n, v.sent_p AS p, COUNT(*) AS records
FROM quota_limits r JOIN reads d ON d.client = r.client JOIN vals v ON v.value_id = d.value_id
WHERE r.kind = 'read' AND v.sent = 1 AND v.invoke_ns >= r.from_ns AND d.read_ns < r.to_ns
GROUP BY r.n, v.sent_p
"""

_WANTED = """
SELECT r.n, v.sent_p AS p
FROM quota_limits r JOIN vals v ON v.sent = 1
  AND v.invoke_ns >= r.from_ns AND v.invoke_ns < r.to_ns
WHERE r.kind = 'read' AND v.outcome = 'ok' AND v.complete_ns < r.to_ns
GROUP BY r.n, v.sent_p, r.record_bytes, r.bytes HAVING COUNT(*) * r.record_bytes > r.bytes
UNION ALL
SELECT r.n, v.sent_p AS p
FROM quota_limits r JOIN vals v ON v.client = r.client
WHERE r.kind = 'written' AND v.sent = 1 AND v.invoke_ns >= r.from_ns AND v.invoke_ns < r.to_ns
GROUP BY r.n, v.sent_p, r.record_bytes, r.bytes HAVING COUNT(*) * r.record_bytes > r.bytes
"""
"""Where more was to be had, or to be written, than the quota lets pass."""


def _explain(row: Mapping[str, Any]) -> str:
    seconds = (row["until_ns"] - row["at_ns"]) / 1e9
    return (
        f"{row['client']} has {row['sub_kind']} {row['had']} bytes of {row['topic']}-"
        f"{row['partition']} in {seconds:.1f} s, though its quota is {row['rate']:g} bytes a "
        f"second: {row['bytes']} at most."
    )


GUARANTEE = Guarantee(
    name="quota_exceeded",
    rank=20,
    about="a client wrote or read more than its quota allows",
    promise="Each client can publish or fetch no more than its quota of bytes a second, over "
    "several small windows, from each broker before it is throttled.",
    source="Kafka documentation, 4.9 Quotas; KIP-13; KIP-55",
    sub_kinds={
        "written": "more bytes were acknowledged than the quota allows",
        "read": "more bytes were read than the quota allows",
    },
    details=(
        "`written`, `read`: while a client id had a quota, more bytes of one partition passed "
        "than the quota allows in that time and eleven seconds more (its windows), and 100,000 "
        "bytes that may be under way.",
        "Only the bytes of values count, which are fewer than brokers count.",
    ),
    not_counted=(
        "The five seconds after the quota was set.",
        "Times in which another fault acted or a leader changed.",
        "Clients other than kafka-python's, compressed records and tombstones.",
    ),
    opportunities=f"SELECT COUNT(*) AS n FROM ({_WANTED}) w",
    violations=f"""
SELECT r.kind AS sub_kind, h.p, CAST(NULL AS BIGINT) AS off, r.from_ns AS at_ns,
  r.to_ns AS until_ns, r.client, r.rate, r.bytes, h.records * r.record_bytes AS had
FROM quota_limits r JOIN ({_WRITTEN} UNION ALL {_READ}) h ON h.n = r.n
WHERE h.records * r.record_bytes > r.bytes""",
    explain=_explain,
    tie="j.client",
    compares_times=True,
    needs=("sends", "admin_ops"),
    reads=("vals", "quota_limits", "reads"),
    rests_on=("sends", "reads", "admin_ops", "clients", "faults", "states"),
)
