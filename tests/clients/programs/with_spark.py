"""Batch write, batch read and a stream from one topic to another with PySpark.

A line of JSON when the stream is under way, and one when all is done.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from urteil.harness.dependencies.java import java

JARS, BOOTSTRAP, PREFIX, ROWS = sys.argv[1:]
SOURCE, TARGET = f"{PREFIX}-in", f"{PREFIX}-out"
A_BATCH = 200
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
}


def session_with(jars: str) -> Any:
    os.environ.setdefault("JAVA_HOME", str(Path(java()).resolve().parent.parent))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def kafka(side: Any, **options: str) -> Any:
    """A reader or writer of Spark's with the options that all have.

    Its administrative client waits for a node that is gone until its time is up.
    """
    side = side.format("kafka").option("kafka.bootstrap.servers", BOOTSTRAP)
    side = side.option("kafka.default.api.timeout.ms", "20000")
    side = side.option("kafka.request.timeout.ms", "10000")
    for name, value in options.items():
        side = side.option(name, value)
    return side


def write(session: Any) -> None:
    numbers = session.range(int(ROWS)).selectExpr("CAST(id AS STRING) key", "CONCAT('v', id) value")
    kafka(numbers.write, topic=SOURCE).save()


def read(session: Any, topic: str) -> list[int]:
    """Rows, and how many different ones."""
    rows = kafka(session.read, subscribe=topic).load().selectExpr("CAST(value AS STRING) value")
    return [rows.count(), rows.distinct().count()]


def stream(session: Any, folder: str) -> None:
    source = kafka(
        session.readStream,
        subscribe=SOURCE,
        startingOffsets="earliest",
        maxOffsetsPerTrigger=str(A_BATCH),
    ).load()
    rows = source.selectExpr("key", "value")
    query = (
        kafka(rows.writeStream, topic=TARGET)
        .option("checkpointLocation", folder)
        .trigger(availableNow=True)
        .start()
    )
    while query.isActive and not query.recentProgress:
        query.awaitTermination(1)
    print(json.dumps({"stream": "under way"}), flush=True)
    query.awaitTermination()


def main() -> None:
    session = session_with(",".join(str(path) for path in sorted(Path(JARS).glob("*.jar"))))
    write(session)
    rows = {"written": read(session, SOURCE)}
    with tempfile.TemporaryDirectory() as folder:
        stream(session, folder)
    rows["streamed"] = read(session, TARGET)
    print(json.dumps(rows), flush=True)
    session.stop()


if __name__ == "__main__":
    main()
