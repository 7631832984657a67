"""Over a longer time, clients write and read no more than the quota of their client id.

Judged by partition and client, in each undisturbed interval of a quota (`quota_limits`): records
that were acknowledged in it, and records that were sent in it and received by the client (records
fetched earlier do not count). Only the size of a record's value is known, so the check counts less
than the broker measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion
from urteil.harness.verify.reference import SmallHistory, Violation

_WRITTEN = """
SELECT limits.n, records.sent_p AS p, COUNT(*) AS records
FROM quota_limits limits JOIN records ON records.client = limits.client
WHERE limits.kind = 'written' AND records.sent = 1 AND records.outcome = 'ok'
  AND records.complete_ns >= limits.from_ns AND records.complete_ns < limits.to_ns
GROUP BY limits.n, records.sent_p
"""

_READ = """
SELECT limits.n, records.sent_p AS p, COUNT(*) AS records
FROM quota_limits limits JOIN reads ON reads.client = limits.client JOIN records
  ON records.value_id = reads.value_id
WHERE limits.kind = 'read' AND records.sent = 1 AND records.invoke_ns >= limits.from_ns
  AND reads.read_ns < limits.to_ns
GROUP BY limits.n, records.sent_p
"""

_DEMAND = """
SELECT limits.n, records.sent_p AS p
FROM quota_limits limits JOIN records ON records.sent = 1
  AND records.invoke_ns >= limits.from_ns AND records.invoke_ns < limits.to_ns
WHERE limits.kind = 'read' AND records.outcome = 'ok' AND records.complete_ns < limits.to_ns
GROUP BY limits.n, records.sent_p, limits.record_bytes, limits.bytes
  HAVING COUNT(*) * limits.record_bytes > limits.bytes
UNION ALL
SELECT limits.n, records.sent_p AS p
FROM quota_limits limits JOIN records ON records.client = limits.client
WHERE limits.kind = 'written' AND records.sent = 1 AND records.invoke_ns >= limits.from_ns
  AND records.invoke_ns < limits.to_ns
GROUP BY limits.n, records.sent_p, limits.record_bytes, limits.bytes
  HAVING COUNT(*) * limits.record_bytes > limits.bytes
"""
"""Quotas for which more records were available, or to be written, than they allow."""


def _explain(row: Mapping[str, Any]) -> str:
    seconds = (row["until_ns"] - row["at_ns"]) / 1e9
    return (
        f"{row['client']} has {row['sub_kind']} {row['had']} bytes of {row['topic']}-"
        f"{row['partition']} in {seconds:.1f} s, though its quota is {row['rate']:g} bytes a "
        f"second: {row['bytes']} at most."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """During a quota no more bytes of a partition are acknowledged, or both sent and received, than
    it allows."""
    for quota in history.derived_rows("quota_limits"):
        for partition in history.partitions:
            if quota.kind == "written":
                records = sum(
                    send.client == quota.client
                    and send.outcome == "ok"
                    and quota.from_ns <= send.complete_ns < quota.to_ns
                    for send in partition.sends
                )
            else:
                records = sum(
                    read.client == quota.client and read.read_ns < quota.to_ns
                    for send in partition.sends
                    if send.invoke_ns >= quota.from_ns
                    for read in history.reads_of[send.value_id]
                )
            if records * quota.record_bytes > quota.bytes:
                yield partition.violation(quota.kind, None, None, quota.client, quota.from_ns)


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
    occasion=Occasion.QUOTAS,
    opportunities=f"SELECT COUNT(*) AS n FROM ({_DEMAND}) demand",
    violations=f"""
SELECT limits.kind AS sub_kind, traffic.p, CAST(NULL AS BIGINT) AS off, limits.from_ns AS at_ns,
  limits.to_ns AS until_ns, limits.client, limits.rate, limits.bytes,
  traffic.records * limits.record_bytes AS had
FROM quota_limits limits JOIN ({_WRITTEN} UNION ALL {_READ}) traffic ON traffic.n = limits.n
WHERE traffic.records * limits.record_bytes > limits.bytes""",
    explain=_explain,
    tie="finding.client",
    compares_times=True,
    needs=("sends", "admin_ops"),
    reads=("records", "quota_limits", "reads"),
    rests_on=("sends", "reads", "admin_ops", "clients", "faults", "states"),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.client, violation.at_ns)",
)
