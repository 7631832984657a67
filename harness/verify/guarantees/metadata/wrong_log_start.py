"""A reader that is out of range receives a log start at which it can read.

A final reader that receives a log start, fetches there, and is out of range again gets nowhere. It
counts when the broker returned the same log start for at least 20 s and refused at least 20
fetches there: a log start that moves meanwhile does not count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from urteil.harness.verify.guarantees.base import Guarantee

_REFUSALS = """
FROM (SELECT b.p, b.client, b.session, b.from_offset, b.last_ns,
        SUM(CASE WHEN f.complete_ns > b.last_ns - 20000000000 THEN 1 ELSE 0 END) AS times,
        MIN(f.complete_ns) AS first_ns
      FROM (SELECT q.p, w.client, w.session, w.from_offset, w.begin_ns,
              MAX(f.complete_ns) AS last_ns
            FROM passes w JOIN parts q ON q.topic_id = w.topic_id AND q.partition = w.partition
            JOIN polls f ON f.client = w.client AND f.session = w.session AND f.outcome = 'fail'
              AND f.error = 'OffsetOutOfRangeError' AND f.complete_ns > w.begin_ns
            WHERE w.final AND NOT w.complete AND q.gone = 0
            GROUP BY q.p, w.client, w.session, w.from_offset, w.begin_ns) b
      JOIN polls f ON f.client = b.client AND f.session = b.session AND f.outcome = 'fail'
        AND f.error = 'OffsetOutOfRangeError' AND f.complete_ns > b.begin_ns
      GROUP BY b.p, b.client, b.session, b.from_offset, b.last_ns) t
JOIN (SELECT a.p, a.invoke_ns, a.offset FROM answers a
      WHERE a.kind = 'earliest' AND a.error IS NULL) e
  ON e.p = t.p AND e.invoke_ns > t.last_ns - 20000000000 AND e.invoke_ns <= t.last_ns
WHERE t.times >= 20 AND t.first_ns <= t.last_ns - 20000000000
GROUP BY t.p, t.client, t.from_offset, t.first_ns, t.last_ns, t.times
HAVING COUNT(*) >= 10 AND MIN(e.offset) = t.from_offset AND MAX(e.offset) = t.from_offset
"""
"""Final readers that for at least 20 s received a log start at which a fetch was out of range. A
log start that moves meanwhile does not count."""


def _explain(row: Mapping[str, Any]) -> str:
    return (
        f"{row['who']} received {row['off']} as log start of {row['topic']}-{row['partition']} for "
        f"{float(row['calm_s']):.1f} s, and an out-of-range error there {row['waiting']} times in "
        "the last 20 s."
    )


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
    opportunities="SELECT COUNT(*) AS n FROM answers a WHERE a.kind = 'earliest'",
    violations=f"""
SELECT 'turned away' AS sub_kind, t.p, t.from_offset AS off, t.first_ns AS at_ns,
  t.last_ns AS until_ns, t.client AS who, t.times AS waiting,
  CAST(t.last_ns - t.first_ns AS DOUBLE) / CAST(1000000000 AS DOUBLE) AS calm_s {_REFUSALS}""",
    explain=_explain,
    tie="j.who",
    compares_times=True,
    failed_lab_excuses=True,
    needs=("sends", "polls"),
    reads=("answers", "parts", "passes", "polls"),
    rests_on=("polls", "clients", "passes", "offset_answers"),
    subjects=("answers",),
)
