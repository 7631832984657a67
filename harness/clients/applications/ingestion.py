"""The case study of big data ingestion: the lake has every record once.

Several sources produce to topics of their own. Spark writes all records to files, which the batch
layer reads by the file sink's log.

The sink skips a batch whose number its log already has. So a session that begins without its
checkpoint counts its batches from 0 again, and loses them: the variant `forgetful`.
"""

from __future__ import annotations

from urteil.harness.clients.applications.programs.spark_queries import Query
from urteil.harness.clients.applications.spark_application import FORGETFUL, spark_application

LAKE = "lake"
QUERIES = (
    Query(
        name=LAKE,
        sink="files",
        sql="SELECT value_id AS key, CONCAT(topic, ' ', key) AS value FROM records",
    ),
)

EXPECTED = f"""
SELECT '{LAKE}' AS sink, i.value_id AS key, CONCAT(i.topic, ' ', i.key) AS value, 'each' AS mode,
  1 AS due
FROM inputs i
"""

APPLICATION = spark_application(
    name="ingestion",
    about="Big data ingestion: Spark writes the records of all sources to a lake of files",
    queries=QUERIES,
    topics=(),
    expected=EXPECTED,
    variants={FORGETFUL: QUERIES},
)
