"""A send is acknowledged as soon as the in-sync replicas have its record.

A broker may overlook a waiting request until it times out, or until another request triggers it.
That loses no record and stalls no partition: some sends only take long. A wait is long compared
with the producer's median wait in undisturbed intervals. Only times count in which no fault acted,
every replica of the partition was in sync and few tasks were runnable. A machine that pauses delays
all sends of one moment. So the check counts moments with late acknowledgements, not sends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion
from urteil.harness.verify.limits import SECOND_NS
from urteil.harness.verify.reference import Row, SmallHistory, Violation, subject_text

_TICK_NS = SECOND_NS // 10
_LATE_SHARE = 50
"""One moment in 50 may be late."""
_REQUIRED_SHARE = 10
"""A finding needs late moments of a tenth of the required ones: the machine may have paused."""
_LATE_FACTOR = 10
"""A late wait is this many times the median wait."""

_WAITS = """
SELECT records.client, records.session, records.sent_p, records.invoke_ns, records.complete_ns,
  records.complete_ns - GREATEST(records.invoke_ns, COALESCE(LAG(records.complete_ns) OVER (
    PARTITION BY records.client, records.session, records.sent_p
    ORDER BY records.complete_ns, records.invoke_ns), records.invoke_ns)) AS wait_ns
FROM records
JOIN (SELECT DISTINCT prompt_sends.client, prompt_sends.session FROM prompt_sends) producers
  ON producers.client = records.client AND producers.session = records.session
WHERE records.outcome = 'ok' AND records.acks = -1 AND records.txn IS NULL"""
"""The wait of each record, from its send or from the previous acknowledgement in its partition: a
producer with a backlog sends late."""

_MOMENTS = f"""
SELECT prompt_sends.client, prompt_sends.session, prompt_sends.min_count, prompt_sends.late_ns,
  MAX(waits.wait_ns) AS wait_ns, MIN(waits.complete_ns) AS at_ns,
  MAX(waits.complete_ns) AS until_ns
FROM prompt_sends JOIN ({_WAITS}) waits ON waits.client = prompt_sends.client
  AND waits.session = prompt_sends.session AND waits.sent_p = prompt_sends.p
  AND waits.invoke_ns >= prompt_sends.from_ns AND waits.complete_ns <= prompt_sends.to_ns
GROUP BY prompt_sends.client, prompt_sends.session, prompt_sends.min_count, prompt_sends.late_ns,
  waits.complete_ns DIV {_TICK_NS}"""
"""Moments with acknowledgements, each with the longest wait that ended in it."""

_RANKED = f"""
SELECT moments.*,
  ROW_NUMBER() OVER (PARTITION BY moments.client, moments.session ORDER BY moments.wait_ns)
    AS place,
  COUNT(*) OVER (PARTITION BY moments.client, moments.session) AS n
FROM ({_MOMENTS}) moments"""

_WITH_MEDIANS = f"""
SELECT ranked.*, MAX(CASE WHEN 2 * ranked.place <= ranked.n + 1 THEN ranked.wait_ns END)
  OVER (PARTITION BY ranked.client, ranked.session) AS median_ns
FROM ({_RANKED}) ranked WHERE ranked.n >= ranked.min_count"""

_LATE = f"timed.wait_ns >= GREATEST(timed.late_ns, {_LATE_FACTOR} * timed.median_ns)"

_PRODUCERS = f"""
SELECT timed.client, timed.session, timed.min_count, COUNT(*) AS n,
  SUM(CASE WHEN {_LATE} THEN 1 ELSE 0 END) AS late,
  MAX(timed.median_ns) AS median_ns, MAX(timed.wait_ns) AS wait_ns,
  MIN(CASE WHEN {_LATE} THEN timed.wait_ns END) AS least_ns,
  MIN(CASE WHEN {_LATE} THEN timed.at_ns END) AS at_ns,
  MAX(CASE WHEN {_LATE} THEN timed.until_ns END) AS until_ns
FROM ({_WITH_MEDIANS}) timed GROUP BY timed.client, timed.session, timed.min_count"""


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['client']} waited for acknowledgements {row['least_ms']} to {row['wait_ms']} ms in "
        f"{row['late']} of {row['moments']} moments, and in half of these {row['median_ms']} ms at "
        "most. No fault acted, and every replica was in sync."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Few moments of a producer have acknowledgements that took many times the median wait."""
    moments: dict[tuple[str, int], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    limits: dict[tuple[str, int], Row] = {}
    for partition in history.partitions:
        acked: dict[tuple[str, int], list[Row]] = defaultdict(list)
        for send in partition.sends:
            if (send.outcome, send.acks, send.txn) == ("ok", -1, None):
                acked[send.client, send.session].append(send)
        for interval in partition.derived_rows("prompt_sends"):
            producer = interval.client, interval.session
            limits[producer] = interval
            sends = sorted(acked[producer], key=lambda send: (send.complete_ns, send.invoke_ns))
            before_ns = 0
            for send in sends:
                wait_ns = send.complete_ns - max(send.invoke_ns, before_ns)
                before_ns = send.complete_ns
                if interval.from_ns <= send.invoke_ns and send.complete_ns <= interval.to_ns:
                    tick = send.complete_ns // _TICK_NS
                    moments[producer][tick] = max(moments[producer][tick], wait_ns)
    for producer, waits in moments.items():
        sorted_waits = sorted(waits.values())
        late_ns = max(
            limits[producer].late_ns, _LATE_FACTOR * sorted_waits[(len(sorted_waits) - 1) // 2]
        )
        late = sum(wait_ns >= late_ns for wait_ns in sorted_waits)
        min_count = limits[producer].min_count
        if (
            len(sorted_waits) >= min_count
            and late * _LATE_SHARE > len(sorted_waits)
            and late * _REQUIRED_SHARE >= min_count
        ):
            yield Violation("late", subject=subject_text(*producer))


GUARANTEE = Guarantee(
    name="slow_acknowledgement",
    rank=27,
    about="some sends are acknowledged much later than others, without a cause",
    promise="A broker acknowledges a send with acks=all as soon as every in-sync replica has it.",
    source="Kafka documentation, Producer Configs: acks; 4.7 Replication",
    sub_kinds={
        "late": (
            "in more than 2 % of the moments with acknowledgements, and at least 3, one had taken "
            "half a second or more, and ten times as long as the median"
        ),
    },
    details=(
        "A moment is a tenth of a second. Judged are producers without transactions with at least "
        "30 of them. A wait begins with the send, or with the acknowledgement before it in the "
        "partition.",
        "Only times count in which no fault acted and every replica of the partition was in sync, "
        "from 5 s after the last disturbance on, and with at most 8 runnable tasks a processor.",
    ),
    not_counted=("Clients with a quota, and runs in which a fault set one.",),
    occasion=Occasion.UNDISTURBED_PRODUCERS,
    not_required="a busy machine leaves no time that counts",
    opportunities=f"SELECT COUNT(*) AS n FROM ({_PRODUCERS}) producers",
    violations=f"""
SELECT 'late' AS sub_kind, CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off,
  producers.at_ns, producers.until_ns, producers.client, producers.session,
  producers.n AS moments, producers.late, producers.median_ns DIV 1000000 AS median_ms,
  producers.least_ns DIV 1000000 AS least_ms, producers.wait_ns DIV 1000000 AS wait_ms
FROM ({_PRODUCERS}) producers WHERE producers.late * {_LATE_SHARE} > producers.n
  AND producers.late * {_REQUIRED_SHARE} >= producers.min_count""",
    explain=_explain,
    tie="finding.client, finding.session",
    compares_times=True,
    host_load_excuses=True,
    needs=("sends",),
    reads=("records", "prompt_sends"),
    rests_on=("sends", "clients", "faults", "states", "samples"),
    subjects=("prompt_sends",),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.client, violation.session)",
)
