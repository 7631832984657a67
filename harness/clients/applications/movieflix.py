"""The case study MovieFlix: a viewer resumes at the last position that was acknowledged.

Players send positions with the viewer as key to `show_position`, which has many partitions and
keeps records shortly. Spark keeps the last position of each viewer in a compacted topic, which the
resuming service reads.
"""

from __future__ import annotations

from urteil.harness.clients.applications.programs.spark_queries import Query
from urteil.harness.clients.applications.spark_application import SAFE, spark_application
from urteil.harness.scenario import TopicSpec

POSITIONS, RESUME = "show_position", "resume"
FIRST = "first-position"
"""The variant that keeps the first position of each viewer."""


def resume_query(chosen: str) -> Query:
    """The query that keeps the position that an aggregate chooses."""
    sql = f"SELECT key, {chosen}(value_id, off) AS value FROM records GROUP BY key"
    return Query(name=RESUME, sink="topic", topic=RESUME, sql=sql)


QUERIES = (resume_query("max_by"),)

EXPECTED = f"""
SELECT '{RESUME}' AS sink, i.key, i.value_id AS value, 'latest' AS mode, 1 AS due
FROM (SELECT i.*, ROW_NUMBER() OVER (PARTITION BY i.key ORDER BY i.off DESC) AS age FROM inputs i) i
WHERE i.age = 1
"""

APPLICATION = spark_application(
    name="movieflix",
    about="MovieFlix: Spark keeps the position at which each viewer resumes",
    queries=QUERIES,
    topics=(TopicSpec(name=RESUME, config=SAFE | {"cleanup.policy": "compact"}),),
    expected=EXPECTED,
    variants={FIRST: (resume_query("min_by"),)},
)
