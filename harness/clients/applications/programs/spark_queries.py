"""Spark Structured Streaming: the queries of one application in one process.

    python -m urteil.harness.clients.applications.programs.spark_queries JOB.json

Every query is SQL over the view `records`, the stream of the input topics, whose columns are those
of `inputs` (`harness/verify/expected_outputs.py`). Its result goes to files, as JSON lines, or to a
topic, which then holds a changelog of `key` and `value`. A query has a checkpoint of its own, from
which the next session of the process continues. A query that fails is started again from its
checkpoint, as by a supervisor: Spark 4.1 ends a query after it has replayed an uncommitted batch
(SPARK-55271), and that is not an error of its results.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

READY = "queries are active"
FILES, CHECKPOINT = "files", "checkpoint"
"""Folders of a query in its own folder."""

RECORDS = """
SELECT decode(substring(value, 31, lengths[0]), 'UTF-8') || '/' || client || '/' || op
    AS value_id,
  client, op, topic, partition, off, key, timestamp_ms
FROM (
  SELECT *, decode(substring(value, 31 + lengths[0], lengths[1]), 'UTF-8') AS client,
    CAST(conv(hex(substring(value, 13, 8)), 16, 10) AS BIGINT) AS op
  FROM (
    SELECT value, CAST(key AS STRING) AS key, topic, partition, offset AS off,
      unix_millis(timestamp) AS timestamp_ms,
      array(CAST(conv(hex(substring(value, 29, 1)), 16, 10) AS INT),
        CAST(conv(hex(substring(value, 30, 1)), 16, 10) AS INT)) AS lengths
    FROM source))
"""
"""Decodes the lab's payload: see `harness/clients/payload.py`."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """One query. A topic's rows are `key` and `value`, both strings."""

    name: str
    sql: str
    sink: Literal["files", "topic"]
    topic: str = ""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The queries of a process, and where they read and write."""

    servers: str
    inputs: list[str]
    folder: str
    temporary: str
    jars: list[str]
    queries: list[Query]


def main(path: str) -> None:
    """Run until SIGTERM."""
    from pyspark.errors import StreamingQueryException

    job = msgspec.json.decode(Path(path).read_bytes(), type=Job)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    spark = open_session(job)
    read_input(spark, job)
    active = {query.name: start(spark, job, query) for query in job.queries}
    print(READY, flush=True)
    while True:
        with contextlib.suppress(StreamingQueryException):
            spark.streams.awaitAnyTermination()
        spark.streams.resetTerminated()
        for query in job.queries:
            if not active[query.name].isActive:
                print(f"{query.name} failed: {active[query.name].exception()}", flush=True)
                active[query.name] = start(spark, job, query)


def open_session(job: Job) -> SparkSession:
    """A local session with two threads. It listens on loopback alone."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.jars": ",".join(job.jars),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "700m",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
        f"-XX:-UsePerfData -Djava.io.tmpdir={job.temporary}",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": job.temporary,
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def read_input(spark: SparkSession, job: Job) -> None:
    """Make the view `records`."""
    source = spark.readStream.format("kafka").options(
        **{
            "kafka.bootstrap.servers": job.servers,
            "kafka.isolation.level": "read_committed",
            "subscribe": ",".join(job.inputs),
            "startingOffsets": "earliest",
        }
    )
    source.load().createOrReplaceTempView("source")
    spark.sql(RECORDS).createOrReplaceTempView("records")


def start(spark: SparkSession, job: Job, query: Query) -> StreamingQuery:
    """Start the query from its checkpoint."""
    folder = Path(job.folder) / query.name
    rows: DataFrame = spark.sql(query.sql)
    writer = rows.writeStream.queryName(query.name).trigger(processingTime="1 second")
    writer = writer.option("checkpointLocation", str(folder / CHECKPOINT))
    if query.sink == "files":
        return writer.format("json").start(str(folder / FILES))
    writer = writer.outputMode("update").format("kafka").option("topic", query.topic)
    return writer.option("kafka.bootstrap.servers", job.servers).start()


if __name__ == "__main__":
    main(sys.argv[1])
