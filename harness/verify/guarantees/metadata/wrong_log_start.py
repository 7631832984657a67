"""A reader that is out of range receives a log start at which it can read.

A final reader that receives a log start, fetches there, and is out of range again makes no
progress. It counts when the broker returned the same log start for at least 20 s and rejected at
least 20 fetches there: a log start that moves meanwhile does not count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee, Occasion
from urteil.harness.verify.reference import SmallHistory, Violation

_LONG_NS = 20_000_000_000

_REFUSALS = f"""
FROM (SELECT late_passes.p, late_passes.client, late_passes.session, late_passes.from_offset,
        late_passes.last_ns,
        SUM(CASE WHEN polls.complete_ns > late_passes.last_ns - {_LONG_NS} THEN 1
                 ELSE 0 END) AS times,
        MIN(polls.complete_ns) AS first_ns
      FROM (SELECT partitions.p, passes.client, passes.session, passes.from_offset, passes.begin_ns,
              MAX(polls.complete_ns) AS last_ns
            FROM passes JOIN partitions ON partitions.topic_id = passes.topic_id
              AND partitions.partition = passes.partition
            JOIN polls ON polls.client = passes.client AND polls.session = passes.session
              AND polls.outcome = 'fail' AND polls.error = 'OffsetOutOfRangeError'
              AND polls.complete_ns > passes.begin_ns
            WHERE passes.final AND NOT passes.complete AND partitions.gone = 0
            GROUP BY partitions.p, passes.client, passes.session, passes.from_offset,
              passes.begin_ns) late_passes
      JOIN polls ON polls.client = late_passes.client AND polls.session = late_passes.session
        AND polls.outcome = 'fail' AND polls.error = 'OffsetOutOfRangeError'
        AND polls.complete_ns > late_passes.begin_ns
      GROUP BY late_passes.p, late_passes.client, late_passes.session, late_passes.from_offset,
        late_passes.last_ns) late_fetches
JOIN (SELECT answers.p, answers.invoke_ns, answers.offset FROM answers
      WHERE answers.kind = 'earliest' AND answers.error IS NULL) log_starts
  ON log_starts.p = late_fetches.p AND log_starts.invoke_ns > late_fetches.last_ns - {_LONG_NS}
    AND log_starts.invoke_ns <= late_fetches.last_ns
WHERE late_fetches.times >= 20 AND late_fetches.first_ns <= late_fetches.last_ns - {_LONG_NS}
GROUP BY late_fetches.p, late_fetches.client, late_fetches.from_offset, late_fetches.first_ns,
  late_fetches.last_ns, late_fetches.times
HAVING COUNT(*) >= 10 AND MIN(log_starts.offset) = late_fetches.from_offset
  AND MAX(log_starts.offset) = late_fetches.from_offset
"""
"""Final readers that for at least 20 s received a log start at which a fetch was out of range. A
log start that moves meanwhile does not count."""


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['who']} received {row['off']} as log start of {row['topic']}-{row['partition']} for "
        f"{float(row['calm_s']):.1f} s, and an out-of-range error there {row['waiting']} times in "
        "the last 20 s."
    )


def _reference(history: SmallHistory) -> Iterator[Violation]:
    """No final reader receives the same log start in all answers of 20 s and is out of range there
    at least twenty times."""
    for partition in history.partitions:
        for sweep in partition.passes if not partition.part.gone else ():
            if not sweep.final or sweep.complete:
                continue
            refused_ns = [
                poll.complete_ns
                for poll in history.polls_of.get((sweep.client, sweep.session), ())
                if poll.outcome == "fail"
                and poll.error == "OffsetOutOfRangeError"
                and poll.complete_ns > sweep.begin_ns
            ]
            if not refused_ns:
                continue
            since_ns = max(refused_ns) - _LONG_NS
            starts = [
                answer.offset
                for answer in partition.derived_rows("answers")
                if answer.kind == "earliest"
                and answer.error is None
                and since_ns < answer.invoke_ns <= max(refused_ns)
            ]
            if (
                min(refused_ns) <= since_ns
                and sum(at_ns > since_ns for at_ns in refused_ns) >= 20
                and len(starts) >= 10
                and {*starts} == {sweep.from_offset}
            ):
                yield partition.violation("turned away", sweep.from_offset, None, sweep.client)


GUARANTEE = Guarantee(
    name="wrong_log_start",
    rank=25,
    split_from="no_delivery",
    about="brokers returned a log start at which fetches were out of range",
    promise="The earliest offset that a leader returns is one from which a consumer can fetch.",
    source="Kafka documentation, Consumer Configs: auto.offset.reset; KIP-107",
    sub_kinds={
        "turned away": (
            "for 20 s or more a final reader got the answer that a partition begins at one "
            "offset, and at least twenty times that this offset does not exist"
        ),
    },
    occasion=Occasion.EARLIEST_LOOKUPS,
    opportunities="SELECT COUNT(*) AS n FROM answers WHERE kind = 'earliest'",
    violations=f"""
SELECT 'turned away' AS sub_kind, late_fetches.p, late_fetches.from_offset AS off,
  late_fetches.first_ns AS at_ns, late_fetches.last_ns AS until_ns, late_fetches.client AS who,
  late_fetches.times AS waiting,
  CAST(late_fetches.last_ns
       - late_fetches.first_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS calm_s
{_REFUSALS}""",
    explain=_explain,
    tie="finding.who",
    compares_times=True,
    failed_lab_excuses=True,
    needs=("sends", "polls"),
    reads=("answers", "partitions", "passes", "polls"),
    rests_on=("polls", "clients", "passes", "offset_answers"),
    subjects=("answers",),
    reference=_reference,
    reference_subject="violation.who",
)
