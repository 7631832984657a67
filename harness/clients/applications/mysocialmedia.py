"""The case study MySocialMedia: likes and comments of each post are counted once.

Posts with their editions, likes and comments are events with the post as key, in topics of their
own. Spark keeps the newest edition and both counts of each post in a compacted topic, which the
pages of the posts read.
"""

from __future__ import annotations

from urteil.harness.clients.applications.programs.spark_queries import Query
from urteil.harness.clients.applications.spark_application import SAFE, spark_application
from urteil.harness.scenario import TopicSpec

POSTS, LIKES, COMMENTS, COUNTS = "posts", "likes", "comments", "posts-with-counts"
COUNTED = f"""
SELECT i.key, CONCAT('edition ', SUM(CASE WHEN i.topic = '{POSTS}' THEN 1 ELSE 0 END), ', ',
  SUM(CASE WHEN i.topic = '{LIKES}' THEN 1 ELSE 0 END), ' likes, ',
  SUM(CASE WHEN i.topic = '{COMMENTS}' THEN 1 ELSE 0 END), ' comments') AS value
FROM {{table}} i GROUP BY i.key"""
QUERIES = (Query(name=COUNTS, sink="topic", topic=COUNTS, sql=COUNTED.format(table="records")),)

EXPECTED = f"""
SELECT '{COUNTS}' AS sink, c.key, c.value, 'latest' AS mode, 1 AS due
FROM ({COUNTED.format(table="inputs")}) c
"""

APPLICATION = spark_application(
    name="mysocialmedia",
    about="MySocialMedia: Spark counts the likes and comments of each post",
    queries=QUERIES,
    topics=(TopicSpec(name=COUNTS, config=SAFE | {"cleanup.policy": "compact"}),),
    expected=EXPECTED,
)
