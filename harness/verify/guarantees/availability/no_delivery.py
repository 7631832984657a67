"""A live group, or a live reader without a group, receives the acknowledged records.

Judged in undisturbed intervals: no fault acted, no leader was elected, and no member joined, left,
paused or resumed. In such an interval a group may receive nothing for twice its session timeout and
10 s (and max.poll.interval.ms more while a member does not poll), a reader for 20 s, a final reader
for 30 s. The pending records were acknowledged with acks=all before the interval, are in the final
log at their offsets, and no member's position was ever beyond them. All members polled until the
end: a client that hangs is not a finding. Readers of committed records are judged only in runs
without transactions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion, place
from urteil.harness.verify.reference import SmallHistory, Violation

_IS_DUE = "intervals.polled = 1 AND intervals.to_ns - intervals.from_ns >= intervals.bound_ns"


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['name']} received no record of {row['topic']}-{row['partition']} at the end of "
        f"{float(row['calm_s']):.1f} s in which no fault acted, although {row['waiting']} "
        f"acknowledged records waited from {place(row)} on and its clients polled."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """A live reader that received nothing for its bound has no pending record as old as that."""
    for partition in history.partitions:
        for interval in partition.derived_rows("undisturbed_intervals"):
            since_ns = interval.to_ns - interval.bound_ns
            waiting = [
                send.offset
                for send in partition.sends
                if send.outcome == "ok" and send.acks == -1 and send.complete_ns <= since_ns
                if (send.offset, send.value_id) in partition.log_slots
                if send.offset >= interval.reached
            ]
            if (
                interval.polled
                and not interval.recent_progress
                and since_ns >= interval.from_ns
                and waiting
            ):
                kind = f"{interval.kind} stands still"
                yield partition.violation(kind, min(waiting), None, interval.name, interval.to_ns)


GUARANTEE = Guarantee(
    name="no_delivery",
    rank=20,
    about="a live group or reader received none of the acknowledged records",
    promise="Consumers receive the records that were committed to the log.",
    source="Kafka documentation, 4.6 Message Delivery Semantics; KIP-62",
    sub_kinds={
        "group stands still": "a group received nothing of a partition",
        "consumer stands still": "a reader without a group received nothing of a partition",
        "final reader stands still": "a final reader received nothing of a partition",
    },
    details=(
        "A group, or a single reader, got nothing of a partition for twice its session timeout + "
        "10 s (a reader 20 s, a final reader 30 s), though all its clients polled to the end and "
        "records waited. These records were acknowledged with acks=all before, are where they "
        "were acknowledged, and are beyond everything that it ever read or committed.",
        "A group counts for the topics of which it was ever assigned a partition.",
    ),
    not_counted=(
        "Times in which a fault acted, a leader changed, or a member joined, left, paused or "
        "resumed: the wait counts from then on.",
        "Times after a quota: Apache Kafka delays a client that exceeded it for minutes, also "
        "after the quota is removed.",
        "Clients that did not poll, and `max.poll.interval.ms` more while a member does not poll.",
        "Readers of committed records where there are transactions.",
    ),
    occasion=Occasion.LIVE_READERS,
    opportunities=f"""
SELECT COUNT(*) AS n FROM undisturbed_intervals intervals WHERE intervals.progressed = 1
  OR ({_IS_DUE})""",
    violations=f"""
SELECT intervals.kind || ' stands still' AS sub_kind, intervals.p, MIN(records.ack_off) AS off,
  intervals.to_ns - intervals.bound_ns AS at_ns, intervals.to_ns AS until_ns, intervals.name,
  intervals.reached, COUNT(*) AS waiting,
  CAST(intervals.to_ns - intervals.from_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS calm_s
FROM undisturbed_intervals intervals JOIN records ON records.sent_p = intervals.p
WHERE {_IS_DUE} AND intervals.recent_progress = 0 AND records.outcome = 'ok' AND records.acks = -1
  AND records.at_ack = 1 AND records.ack_off >= intervals.reached
  AND records.complete_ns <= intervals.to_ns - intervals.bound_ns
GROUP BY intervals.kind, intervals.p, intervals.to_ns, intervals.bound_ns, intervals.name,
  intervals.reached, intervals.from_ns""",
    explain=_explain,
    tie="finding.name",
    compares_times=True,
    host_load_excuses=True,
    needs=("sends", "polls"),
    reads=("records", "undisturbed_intervals"),
    rests_on=(
        *("sends", "replicas", "logs", "polls", "clients", "faults", "states", "commits"),
        *("assignments", "passes"),
    ),
    subjects=("undisturbed_intervals",),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.name, violation.until_ns)",
)
