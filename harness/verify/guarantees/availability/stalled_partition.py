"""A partition whose leader is alive and reachable acknowledges records.

`no_progress` judges faults alone, on a complete cluster, where the scenario declares that its
settings survive them. This guarantee judges every run. `derived/writable_intervals.py` finds the
times in which neither faults nor settings explain a partition without acknowledgements: no fault
acts on the leader, the controller or their links, and the ISR is as large as it must be. Other
brokers may be dead or cut off at the same time, and clocks may be wrong.

A silence counts from the last acknowledgement, or from the begin of the writable interval, if that
is later. Two producers must have waited from its begin to the bound: a single one may have hung."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from urteil.harness.verify.guarantees.availability.pending_sends import (
    end_of_wait_ns,
    is_refused,
    plain_producers,
)
from urteil.harness.verify.guarantees.base import Excuse, Guarantee, Occasion
from urteil.harness.verify.limits import FOREVER_NS, REFUSED, WAITS
from urteil.harness.verify.reference import SmallHistory, Violation

_LATEST_WAIT_NS = 2_000_000_000
"""Producers must begin to wait within this time after the begin of a silence."""

_SILENCES = f"""
SELECT intervals.p, intervals.bound_ns, intervals.leader, intervals.wall_clock,
  GREATEST(intervals.from_ns, pauses.last_ns) AS since_ns,
  LEAST(intervals.to_ns, pauses.next_ns) AS until_ns
FROM writable_intervals intervals JOIN (
  SELECT ticks.p, ticks.last_ns,
    COALESCE(LEAD(ticks.first_ns) OVER (PARTITION BY ticks.p ORDER BY ticks.tick), {FOREVER_NS})
      AS next_ns
  FROM ticks WHERE ticks.p IN (SELECT p FROM writable_intervals)) pauses ON pauses.p = intervals.p
WHERE LEAST(intervals.to_ns, pauses.next_ns) - GREATEST(intervals.from_ns, pauses.last_ns)
  >= intervals.bound_ns"""
"""Times without an acknowledgement that exceed the bound, within writable intervals."""

_TRIED = f"""
SELECT silences.p, silences.since_ns, silences.until_ns, silences.leader, silences.wall_clock,
  records.client
FROM ({_SILENCES}) silences JOIN records ON records.sent_p = silences.p
  AND records.invoke_ns <= silences.since_ns + silences.bound_ns
  AND {WAITS} >= silences.since_ns AND NOT ({REFUSED})
JOIN clients ON clients.client = records.client AND clients.session = records.session
  AND clients.kind = 'producer' AND clients.transactional_id IS NULL
  AND clients.end_ns >= silences.since_ns + silences.bound_ns
GROUP BY silences.p, silences.since_ns, silences.until_ns, silences.bound_ns, silences.leader,
  silences.wall_clock, records.client
HAVING MIN(records.invoke_ns) <= silences.since_ns + {_LATEST_WAIT_NS}
  AND MAX({WAITS}) >= silences.since_ns + silences.bound_ns"""
"""Plain producers that waited throughout a silence."""


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['topic']}-{row['partition']} acknowledged nothing for {float(row['silent_s']):.1f} "
        f"s, although {row['producers']} producers tried. Its leader, broker {row['leader']}, and "
        "the controller were alive and reachable, and enough replicas were in sync."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Between two acknowledgements within a writable interval, no two producers wait for longer
    than the bound."""
    plain = plain_producers(history)
    for partition in history.partitions:
        acks_ns = sorted(
            send.complete_ns
            for send in partition.sends
            if send.outcome == "ok" and send.complete_ns is not None
        )
        for writable in partition.derived_rows("writable_intervals"):
            for last_ns, next_ns in pairwise([*acks_ns, FOREVER_NS]):
                since_ns = max(writable.from_ns, last_ns)
                limit_ns = since_ns + writable.bound_ns
                if min(writable.to_ns, next_ns) < limit_ns:
                    continue
                waits: dict[str, list[tuple[int, int]]] = defaultdict(list)
                for send in partition.sends:
                    end_ns = end_of_wait_ns(history, send)
                    is_waiting = send.invoke_ns <= limit_ns and end_ns >= since_ns
                    is_alive = plain.get((send.client, send.session), 0) >= limit_ns
                    if is_waiting and is_alive and not is_refused(send):
                        waits[send.client].append((send.invoke_ns, end_ns))
                tried = [
                    client
                    for client, times in waits.items()
                    if min(begin_ns for begin_ns, _ in times) <= since_ns + _LATEST_WAIT_NS
                    and max(end_ns for _, end_ns in times) >= limit_ns
                ]
                if len(tried) > 1:
                    yield partition.violation("stalled", None, None, since_ns)


GUARANTEE = Guarantee(
    name="stalled_partition",
    rank=15,
    about="a partition acknowledged nothing for longer than the faults and settings explain",
    promise="A leader removes a follower from the ISR that has not caught up for "
    "replica.lag.time.max.ms, and a partition with min.insync.replicas in sync takes writes.",
    source="Kafka documentation, Broker Configs: replica.lag.time.max.ms; 4.7 Replication",
    sub_kinds={
        "stalled": (
            "a partition acknowledged nothing for 1.5 x `replica.lag.time.max.ms` + 5 s, and for "
            "the client's request timeout + 8 s, although two plain producers tried and nothing "
            "hindered its leader"
        ),
    },
    details=(
        "Nothing hinders a leader that is registered and stays, with at least min.insync.replicas "
        "in sync, while a controller is active and no fault acts on either, on metadata nodes, "
        "or on a link that does not end at another broker. A quorum of KRaft that faults leave "
        "without a majority has no active controller.",
        "Crashes, shutdowns, pauses and cut links of other brokers may act. The time counts from "
        "the last state of the partition, and from the last beginning or end of such a fault.",
        "Wrong clocks, and faults of group members, hinder nothing.",
    ),
    not_counted=(
        "All other faults, from their beginning to their healing. After a fault of a disk, a quota "
        "or another min.insync.replicas, the rest of the run.",
        "Partitions to which fewer than two producers without transactions were sending.",
    ),
    occasion=Occasion.WRITABLE,
    opportunities="""
SELECT COUNT(*) AS n FROM writable_intervals intervals
JOIN (SELECT ticks.p, MIN(ticks.first_ns) AS first_ns FROM ticks GROUP BY ticks.p) first_acks
  ON first_acks.p = intervals.p AND first_acks.first_ns < intervals.to_ns""",
    violations=f"""
SELECT 'stalled' AS sub_kind, tried.p, CAST(NULL AS BIGINT) AS off, tried.since_ns AS at_ns,
  tried.until_ns, tried.leader, tried.wall_clock, COUNT(*) AS producers,
  CAST(tried.until_ns - tried.since_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS silent_s
FROM ({_TRIED}) tried
GROUP BY tried.p, tried.since_ns, tried.until_ns, tried.leader, tried.wall_clock
HAVING COUNT(*) > 1""",
    excuses=(
        Excuse(
            when="violation.wall_clock = 1",
            reason="the clock was moved by which its leader measures the lag of followers",
        ),
    ),
    explain=_explain,
    tie="finding.leader",
    compares_times=True,
    host_load_excuses=True,
    needs=("sends", "states"),
    reads=("records", "ticks", "killed", "clients", "writable_intervals"),
    rests_on=("sends", "faults", "states", "clients"),
    subjects=("writable_intervals",),
    reference=_reference,
    reference_subject="CAST(violation.at_ns AS STRING)",
)
