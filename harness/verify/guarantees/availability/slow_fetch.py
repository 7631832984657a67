"""A fetch is answered as soon as there is a record for it.

Client libraries do not expose when fetches are answered. So the check judges the age of a delivered
record: the time from its acknowledgement to the poll that returns it. Only polls of readers that
had received everything before count, since a reader with a backlog may be slow itself. A fetch that
no append completes is answered at the end of its wait, `fetch.max.wait.ms`.

On a busy machine some polls are as late. So only times count in which no fault acted, every replica
was in sync and few tasks were runnable, and the share of late polls must be high."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion
from urteil.harness.verify.reference import Row, SmallHistory, Violation, subject_text

_LATE_SHARE = 50
"""One poll in 50 may be late."""
_REQUIRED_SHARE = 10
"""A finding needs late polls of a tenth of the required ones: the machine may have paused."""

_STEPS = """
SELECT partitions.p, polls.client, polls.session, polls.poll, polls.complete_ns,
  polls.position_before, polls.event,
  LAG(polls.complete_ns) OVER (PARTITION BY polls.client, polls.session, polls.topic_id,
      polls.partition ORDER BY polls.poll) AS before_ns
FROM polls JOIN partitions ON partitions.topic_id = polls.topic_id
  AND partitions.partition = polls.partition
WHERE polls.outcome = 'ok'"""
"""Polls with records of a partition, each with the time of the previous poll."""

_AGES = f"""
SELECT prompt_reads.client, prompt_reads.session, prompt_reads.late_ns, prompt_reads.min_count,
  steps.poll, MAX(steps.complete_ns) AS at_ns,
  MAX(steps.complete_ns - records.complete_ns) AS age_ns
FROM prompt_reads JOIN ({_STEPS}) steps ON steps.client = prompt_reads.client
  AND steps.session = prompt_reads.session AND steps.p = prompt_reads.p
  AND steps.before_ns >= prompt_reads.from_ns AND steps.complete_ns <= prompt_reads.to_ns
JOIN records ON records.p = steps.p AND records.ack_off = steps.position_before
WHERE steps.event IS NULL AND records.acks = -1 AND records.txn IS NULL
  AND records.complete_ns > steps.before_ns
GROUP BY prompt_reads.client, prompt_reads.session, prompt_reads.late_ns, prompt_reads.min_count,
  steps.poll"""
"""Polls of readers that had received everything, with the age of the oldest record in each."""

_READERS = f"""
SELECT ages.client, ages.session, COUNT(*) AS n,
  SUM(CASE WHEN ages.age_ns >= ages.late_ns THEN 1 ELSE 0 END) AS late,
  MIN(CASE WHEN ages.age_ns >= ages.late_ns THEN ages.at_ns END) AS at_ns,
  MAX(CASE WHEN ages.age_ns >= ages.late_ns THEN ages.at_ns END) AS until_ns,
  MAX(ages.age_ns) AS age_ns, MAX(ages.late_ns) AS late_ns, ages.min_count
FROM ({_AGES}) ages GROUP BY ages.client, ages.session, ages.min_count
HAVING COUNT(*) >= ages.min_count"""


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['late']} of {row['polls']} polls of {row['client']} returned records that had been "
        f"acknowledged for {row['late_ms']} ms and more (up to {row['age_ms']} ms), although it "
        "had received all earlier ones, no fault acted and every replica was in sync."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """Few polls of a reader that is not behind return old records."""
    ages: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    limits: dict[tuple[str, int], Row] = {}
    for partition in history.partitions:
        acked_ns = {
            send.offset: send.complete_ns
            for send in partition.sends
            if send.outcome == "ok" and send.acks == -1 and send.txn is None
        }
        for interval in partition.derived_rows("prompt_reads"):
            reader = interval.client, interval.session
            limits[reader] = interval
            polls = sorted(
                (row for row in partition.polls if (row.client, row.session) == reader),
                key=lambda row: row.poll,
            )
            polls = [row for row in polls if row.outcome == "ok"]
            for before, poll in itertools.pairwise(polls):
                at_ns = acked_ns.get(poll.position_before)
                is_undisturbed = (
                    interval.from_ns <= before.complete_ns and poll.complete_ns <= interval.to_ns
                )
                if (
                    is_undisturbed
                    and at_ns is not None
                    and at_ns > before.complete_ns
                    and not poll.event
                ):
                    age_ns = poll.complete_ns - at_ns
                    ages[reader][poll.poll] = max(age_ns, ages[reader].get(poll.poll, age_ns))
    for reader, by_poll in ages.items():
        late_ns, min_count = limits[reader].late_ns, limits[reader].min_count
        late = sum(age_ns >= late_ns for age_ns in by_poll.values())
        has_many_late = late * _LATE_SHARE > len(by_poll) and late * _REQUIRED_SHARE >= min_count
        if len(by_poll) >= min_count and has_many_late:
            yield Violation("waited out", subject=subject_text(*reader))


GUARANTEE = Guarantee(
    name="slow_fetch",
    rank=25,
    about="fetches are answered only at the end of their wait, although there are records",
    promise="The broker answers a fetch as soon as fetch.min.bytes of data are there, and waits "
    "for fetch.max.wait.ms only if they are not.",
    source="Kafka documentation, Consumer Configs: fetch.max.wait.ms, fetch.min.bytes",
    sub_kinds={
        "waited out": (
            "more than 2 % of a reader's polls, and at least 5, returned records that had been "
            "acknowledged for half of its `fetch.max.wait.ms` and more"
        ),
    },
    details=(
        "Judged are readers without a group that have at least 50 such polls, and records with "
        "acks=all outside of transactions. The reader had received everything before the record "
        "was acknowledged.",
        "Only times count in which no fault acted and every replica of the partition was in sync, "
        "from 5 s after the last disturbance on, and with at most 8 runnable tasks a processor.",
    ),
    not_counted=(
        "Members of groups, which commit between two polls.",
        "Readers of committed records, and readers that fetch from the nearest replica.",
        "Clients with a quota, and runs in which a fault set one.",
    ),
    occasion=Occasion.PROMPT_READERS,
    not_required="a busy machine leaves no time that counts",
    opportunities=f"SELECT COUNT(*) AS n FROM ({_READERS}) readers",
    violations=f"""
SELECT 'waited out' AS sub_kind, CAST(NULL AS INT) AS p, CAST(NULL AS BIGINT) AS off,
  readers.at_ns, readers.until_ns, readers.client, readers.session, readers.n AS polls,
  readers.late, readers.late_ns DIV 1000000 AS late_ms, readers.age_ns DIV 1000000 AS age_ms
FROM ({_READERS}) readers WHERE readers.late * {_LATE_SHARE} > readers.n
  AND readers.late * {_REQUIRED_SHARE} >= readers.min_count""",
    explain=_explain,
    tie="finding.client, finding.session",
    compares_times=True,
    host_load_excuses=True,
    needs=("sends", "polls"),
    reads=("records", "partitions", "polls", "prompt_reads"),
    rests_on=("sends", "polls", "clients", "faults", "states", "samples"),
    subjects=("prompt_reads",),
    reference=_reference,
    reference_subject="CONCAT_WS('/', violation.client, violation.session)",
)
