"""Kafka Streams joins two topics within a window of time."""

from __future__ import annotations

from urteil.harness.clients.applications.result_topics import text
from urteil.harness.clients.applications.streams_application import RESULTS, streams_application
from urteil.harness.scenario import Scenario

WITHIN_MS = 300


def expected_rows(scenario: Scenario) -> str:
    """Pairs of records of both topics with the same last digit of the key, at most WITHIN_MS apart.

    Records meet in buckets of that length, so that the cost follows the number of pairs.
    """
    left, right = (topic.name for topic in scenario.workload.topics)
    digits = f"""SELECT i.value_id, i.topic, i.timestamp_ms,
    i.timestamp_ms DIV {WITHIN_MS} AS bucket, SUBSTRING(i.key, LENGTH(i.key), 1) AS digit
  FROM inputs i"""
    return f"""
SELECT '{RESULTS}' AS sink, a.value_id || '|' || b.value_id AS key,
  a.value_id || '|' || b.value_id AS value, 'each' AS mode, 1 AS due
FROM ({digits}) a
JOIN (SELECT d.*, d.bucket + s.shift AS met FROM ({digits}) d
  CROSS JOIN (SELECT -1 AS shift UNION ALL SELECT 0 UNION ALL SELECT 1) s) b
  ON b.digit = a.digit AND b.met = a.bucket
WHERE a.topic = '{left}' AND b.topic = '{right}'
  AND ABS(a.timestamp_ms - b.timestamp_ms) <= {WITHIN_MS}
"""


APPLICATION = streams_application(
    "streams-join",
    "Kafka Streams joins two topics by key within 300 ms, exactly once",
    topology="join",
    expected=expected_rows,
    value=text,
)
