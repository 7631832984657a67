"""The case study MovieFlix: a viewer resumes at the last position that was acknowledged.

Players send positions with the viewer as key to `show_position`, which has many partitions and
keeps records shortly. Spark keeps the last position of each viewer in a compacted topic, which the
resuming service reads.
"""

from __future__ import annotations

from urteil.harness.clients.applications.declaration import EXACTLY_ONCE, Application
from urteil.harness.clients.applications.programs.spark_queries import Query
from urteil.harness.clients.applications.spark_application import (
    fetch_parts,
    read_outputs,
    spark_process,
    unread_records,
)
from urteil.harness.scenario import TopicSpec

POSITIONS, RESUME = "show_position", "resume"
QUERIES = (
    Query(
        name=RESUME,
        sink="topic",
        topic=RESUME,
        sql="SELECT key, max_by(value_id, off) AS value FROM records GROUP BY key",
    ),
)

EXPECTED = f"""
SELECT '{RESUME}' AS sink, i.key, i.value_id AS value, 'latest' AS mode, 1 AS due
FROM (SELECT i.*, ROW_NUMBER() OVER (PARTITION BY i.key ORDER BY i.off DESC) AS age FROM inputs i) i
WHERE i.age = 1
"""

APPLICATION = Application(
    name="movieflix",
    about="MovieFlix: Spark keeps the position at which each viewer resumes",
    promise=EXACTLY_ONCE,
    processes=(spark_process(QUERIES),),
    topics=(
        TopicSpec(name=RESUME, config={"min.insync.replicas": "2", "cleanup.policy": "compact"}),
    ),
    prepare=fetch_parts,
    remaining=lambda context: unread_records(context, QUERIES),
    outputs=lambda context: read_outputs(context, QUERIES),
    expected=lambda _scenario: EXPECTED,
)
