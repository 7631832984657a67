"""The case study of logs and metrics: every line in the index once, and the rate of errors.

Agents on all hosts forward lines and metrics with the application as key. Spark writes both into an
index, which users search, and counts the lines of each application and window, with the errors
among them. Every tenth line is an error.
"""

from __future__ import annotations

from urteil.harness.clients.applications.programs.spark_queries import Query
from urteil.harness.clients.applications.spark_application import SAFE, spark_application
from urteil.harness.scenario import TopicSpec

LOGS, METRICS = "application-logs", "application-metrics"
INDEX, RATES = "index", "error-rates"
WINDOW_MS = 5_000
INDEXED = (
    "SELECT CONCAT(i.topic, '-', i.partition, '-', i.off) AS key, "
    "CONCAT(i.key, ' ', i.value_id) AS value FROM {table} i"
)
COUNTED = f"""
SELECT CONCAT(i.key, '@', i.timestamp_ms DIV {WINDOW_MS}) AS key,
  CONCAT(SUM(CASE WHEN i.op % 10 = 0 THEN 1 ELSE 0 END), ' errors in ', COUNT(*)) AS value
FROM {{table}} i WHERE i.topic = '{LOGS}' GROUP BY i.key, i.timestamp_ms DIV {WINDOW_MS}"""
QUERIES = (
    Query(name=INDEX, sink="files", sql=INDEXED.format(table="records")),
    Query(name=RATES, sink="topic", topic=RATES, sql=COUNTED.format(table="records")),
)

EXPECTED = f"""
SELECT '{INDEX}' AS sink, e.key, e.value, 'each' AS mode, 1 AS due
FROM ({INDEXED.format(table="inputs")}) e
UNION ALL
SELECT '{RATES}', e.key, e.value, 'latest', 1 FROM ({COUNTED.format(table="inputs")}) e
"""

APPLICATION = spark_application(
    name="logs",
    about="Logs and metrics: Spark indexes every line and counts errors by application and window",
    queries=QUERIES,
    topics=(TopicSpec(name=RATES, config=SAFE | {"cleanup.policy": "compact"}),),
    expected=EXPECTED,
)
