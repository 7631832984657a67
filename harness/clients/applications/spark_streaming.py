"""Spark Structured Streaming over topics: a lake of files, and a table of counts."""

from __future__ import annotations

from urteil.harness.clients.applications.programs.spark_queries import Query
from urteil.harness.clients.applications.spark_application import SAFE, spark_application
from urteil.harness.scenario import TopicSpec

QUERIES = (
    Query(name="lake", sink="files", sql="SELECT value_id AS key, key AS value FROM records"),
    Query(
        name="counts",
        sink="topic",
        topic="counts",
        sql="SELECT key, CAST(COUNT(*) AS STRING) AS value FROM records GROUP BY key",
    ),
)

EXPECTED = """
SELECT 'lake' AS sink, i.value_id AS key, i.key AS value, 'each' AS mode, 1 AS due FROM inputs i
UNION ALL
SELECT 'counts', i.key, CAST(COUNT(*) AS STRING), 'latest', 1 FROM inputs i GROUP BY i.key
"""

APPLICATION = spark_application(
    name="spark-streaming",
    about="Spark Structured Streaming: every record once in files, and counts by key in a topic",
    queries=QUERIES,
    topics=(TopicSpec(name="counts", config=SAFE),),
    expected=EXPECTED,
)
