"""The case study MySocialMedia: likes and comments of each post are counted once.

Likes and comments are events with the post as key, in topics of their own. Spark counts both of
each post, and keeps the counts in a compacted topic, which the pages of the posts read.
"""

from __future__ import annotations

from urteil.harness.clients.applications.programs.spark_queries import Query
from urteil.harness.clients.applications.spark_application import SAFE, spark_application
from urteil.harness.scenario import TopicSpec

LIKES, COMMENTS, COUNTS = "likes", "comments", "post-counts"
QUERIES = (
    Query(
        name=COUNTS,
        sink="topic",
        topic=COUNTS,
        sql=f"""
SELECT key, CONCAT(COUNT(CASE WHEN topic = '{LIKES}' THEN 1 END), ' likes, ',
  COUNT(CASE WHEN topic = '{COMMENTS}' THEN 1 END), ' comments') AS value
FROM records GROUP BY key""",
    ),
)

EXPECTED = f"""
SELECT '{COUNTS}' AS sink, i.key, CONCAT(SUM(CASE WHEN i.topic = '{LIKES}' THEN 1 ELSE 0 END),
  ' likes, ', SUM(CASE WHEN i.topic = '{COMMENTS}' THEN 1 ELSE 0 END), ' comments') AS value,
  'latest' AS mode, 1 AS due
FROM inputs i GROUP BY i.key
"""

APPLICATION = spark_application(
    name="mysocialmedia",
    about="MySocialMedia: Spark counts the likes and comments of each post",
    queries=QUERIES,
    topics=(TopicSpec(name=COUNTS, config=SAFE | {"cleanup.policy": "compact"}),),
    expected=EXPECTED,
)
