"""Kafka Streams counts words: a repartition topic, a store with a changelog, a standby."""

from __future__ import annotations

from urteil.harness.clients.applications.result_topics import long
from urteil.harness.clients.applications.streams_application import (
    RESULTS,
    WITHOUT_TRANSACTIONS,
    streams_application,
)

EXPECTED = f"""
SELECT '{RESULTS}' AS sink, w.word AS key, COUNT(*) AS value, 'latest' AS mode, 1 AS due
FROM (SELECT i.key AS word FROM inputs i
  UNION ALL SELECT i.client FROM inputs i
  UNION ALL SELECT CASE WHEN i.op % 2 = 0 THEN 'even' ELSE 'odd' END FROM inputs i) w
GROUP BY w.word
"""
"""The words of a record are its key, its client, and the parity of its number."""

APPLICATION = streams_application(
    "streams-count",
    "Kafka Streams counts words over a repartition topic, exactly once",
    topology="count",
    expected=lambda _scenario: EXPECTED,
    value=long,
    variants=("forgets_store", WITHOUT_TRANSACTIONS),
)
