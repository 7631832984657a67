"""Kafka Streams counts keys in windows and writes each count once, when its window closed."""

from __future__ import annotations

from urteil.harness.clients.applications.result_topics import long
from urteil.harness.clients.applications.streams_application import RESULTS, streams_application

SIZE_MS, GRACE_MS = 5_000, 25_000

EXPECTED = f"""
SELECT '{RESULTS}' AS sink, i.key || '@' || CAST(i.begin_ms AS STRING) AS key, COUNT(*) AS value,
  'each' AS mode, CASE WHEN i.begin_ms + {SIZE_MS + GRACE_MS} <= MAX(e.last_ms) THEN 1 ELSE 0 END
    AS due
FROM (SELECT n.*, n.timestamp_ms DIV {SIZE_MS} * {SIZE_MS} AS begin_ms FROM inputs n) i
JOIN (SELECT m.topic, m.partition, MAX(m.timestamp_ms) AS last_ms FROM inputs m
  GROUP BY m.topic, m.partition) e ON e.topic = i.topic AND e.partition = i.partition
GROUP BY i.key, i.begin_ms
"""
"""A window closes when a record of its partition is later than its end by the grace period, which
is longer than a producer retries: no record is late."""

APPLICATION = streams_application(
    "streams-windows",
    "Kafka Streams counts keys in windows and suppresses counts until they are final, exactly once",
    topology="windows",
    expected=lambda _scenario: EXPECTED,
    value=long,
)
