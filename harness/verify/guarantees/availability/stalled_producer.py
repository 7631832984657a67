"""A producer receives the answers to its records while nothing prevents it.

`stalled_partition` judges two producers that wait while the partition acknowledges nothing. Here
one suffices, and others may receive answers meanwhile: a broker may treat one connection, one
producer id or one record differently. Judged are the same intervals
(`derived/writable_intervals.py`), and each record that waits in one for the bound of its
partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.availability.pending_sends import (
    end_of_wait_ns,
    plain_producers,
)
from urteil.harness.verify.guarantees.base import Excuse, Guarantee, Occasion
from urteil.harness.verify.limits import WAITS
from urteil.harness.verify.plurals import count_text
from urteil.harness.verify.reference import SmallHistory, Violation

_WAITS = f"""
SELECT intervals.p, intervals.leader, intervals.wall_clock, intervals.from_ns AS free_ns,
  records.client, records.session, GREATEST(intervals.from_ns, records.invoke_ns) AS since_ns,
  LEAST(intervals.to_ns, clients.end_ns, {WAITS}) AS until_ns, intervals.bound_ns
FROM writable_intervals intervals JOIN records ON records.sent_p = intervals.p
  AND records.invoke_ns <= intervals.to_ns - intervals.bound_ns
  AND {WAITS} >= intervals.from_ns
JOIN clients ON clients.client = records.client AND clients.session = records.session
  AND clients.kind = 'producer' AND clients.transactional_id IS NULL
WHERE clients.end_ns >= GREATEST(intervals.from_ns, records.invoke_ns)
  + intervals.bound_ns"""
"""Waits of plain producers within writable intervals."""


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['client']} waited {float(row['waited_s']):.1f} s for answers to "
        f"{count_text(row['waiting'], 'record')} of {row['topic']}-{row['partition']}. Its "
        f"leader, broker {row['leader']}, and the controller were alive and reachable, and enough "
        "replicas were in sync."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No record of a live producer waits for the bound of its partition."""
    plain = plain_producers(history)
    for partition in history.partitions:
        for interval in partition.derived_rows("writable_intervals"):
            begins: dict[tuple[str, int], list[int]] = defaultdict(list)
            for send in partition.sends:
                producer = send.client, send.session
                since_ns = max(interval.from_ns, send.invoke_ns)
                until_ns = min(
                    interval.to_ns, plain.get(producer, 0), end_of_wait_ns(history, send)
                )
                if until_ns - since_ns >= interval.bound_ns:
                    begins[producer].append(since_ns)
            for (client, _), since in begins.items():
                yield partition.violation("unanswered", None, None, client, min(since))


GUARANTEE = Guarantee(
    name="stalled_producer",
    rank=16,
    about="a producer waited for answers longer than the faults and settings explain",
    promise="A leader answers a produce request when the replicas in sync have its records.",
    source="Kafka documentation, Producer Configs: acks, request.timeout.ms",
    sub_kinds={
        "unanswered": (
            "a plain producer waited for the answer to a record as long as `stalled_partition` "
            "permits, though nothing hindered the leader"
        ),
    },
    details=(
        "The time is that in which nothing hinders the partition's leader, as for "
        "`stalled_partition`. Other producers may receive answers meanwhile.",
        "A finding is a producer, a partition and such a time, with the number of records that "
        "waited.",
    ),
    not_counted=(
        "Producers with transactions, and clients that were killed.",
        "Waits that begin or end in a time that a fault explains, as far as they lie in it.",
    ),
    occasion=Occasion.WRITABLE,
    opportunities=f"""
SELECT COUNT(*) AS n FROM (SELECT DISTINCT waits.p, waits.free_ns, waits.client, waits.session
                           FROM ({_WAITS}) waits) tried""",
    violations=f"""
SELECT 'unanswered' AS sub_kind, waits.p, CAST(NULL AS BIGINT) AS off,
  MIN(waits.since_ns) AS at_ns, MAX(waits.until_ns) AS until_ns, waits.leader, waits.wall_clock,
  waits.client, COUNT(*) AS waiting,
  CAST(MAX(waits.until_ns - waits.since_ns) AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS waited_s
FROM ({_WAITS}) waits WHERE waits.until_ns - waits.since_ns >= waits.bound_ns
GROUP BY waits.p, waits.free_ns, waits.leader, waits.wall_clock, waits.client, waits.session""",
    excuses=(
        Excuse(
            when="violation.wall_clock = 1",
            reason="the clock was moved by which its leader measures the lag of followers",
        ),
    ),
    explain=_explain,
    tie="finding.client, finding.leader",
    compares_times=True,
    host_load_excuses=True,
    needs=("sends", "states"),
    reads=("records", "killed", "clients", "writable_intervals"),
    rests_on=("sends", "faults", "states", "clients"),
    subjects=("writable_intervals",),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.client, violation.at_ns)",
)
