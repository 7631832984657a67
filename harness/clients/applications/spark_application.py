"""Applications of Spark Structured Streaming: their process, progress and outputs.

All queries run in one process (`programs/spark_queries.py`). Their checkpoints and files lie in the
process's folder, which outlives a kill. Spark's own promises hold: files appear in the file sink's
log exactly once, and a topic receives each batch at least once, so that the last row of a key
counts.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

import msgspec

from urteil.harness.clients.applications.declaration import (
    HOST,
    Application,
    AppProcess,
    Context,
)
from urteil.harness.clients.applications.programs import spark_queries
from urteil.harness.clients.applications.programs.spark_queries import (
    CHECKPOINT,
    FILES,
    READY,
    Job,
    Query,
)
from urteil.harness.clients.applications.progress import unread
from urteil.harness.clients.applications.result_topics import read_topic
from urteil.harness.clients.options import ApplicationOptions
from urteil.harness.clients.promises import EXACTLY_ONCE
from urteil.harness.dependencies.spark_kafka import spark_kafka_jars
from urteil.harness.evidence.outputs import Output
from urteil.harness.scenario import Scenario, TopicSpec

SAFE = {"min.insync.replicas": "2"}
PROCESS = "a1"
READY_S = 180.0
JOB = "job.json"
"""The job of a session, written when it starts."""
COMMITS = "commits/[0-9]*"
VERSION = "v1"
"""The first line of Spark's logs: the version of their format."""
FORGETFUL = "forgetful"
"""The variant whose sessions begin without the checkpoints of the last one."""


def fetch_parts(_scenario: Scenario) -> None:
    """Fetch the Kafka connector."""
    spark_kafka_jars()


def spark_application(
    *,
    name: str,
    about: str,
    queries: Sequence[Query],
    topics: Sequence[TopicSpec],
    expected: str,
    variants: Mapping[str, Sequence[Query]] | None = None,
) -> Application:
    """An application with these queries. Its last rows and its files are promised exactly once.
    A variant is a seeded bug by its own queries."""
    return Application(
        name=name,
        about=about,
        promise=EXACTLY_ONCE,
        processes=(spark_process(queries, variants or {}),),
        topics=tuple(topics),
        prepare=fetch_parts,
        remaining=lambda context: unread_records(context, queries),
        outputs=lambda context: read_outputs(context, queries),
        expected=lambda _scenario: expected,
        variants=tuple(variants or ()),
    )


def spark_process(queries: Sequence[Query], variants: Mapping[str, Sequence[Query]]) -> AppProcess:
    """The process of an application with these queries. A query's topic is the short name of one of
    the application's own topics."""

    def command(context: Context, name: str) -> list[str]:
        folder = context.process_folder(name)
        variant = ApplicationOptions.of(context.load).variant
        job = Job(
            servers=context.servers,
            inputs=context.inputs,
            folder=str(folder),
            temporary=str(context.temporary(name)),
            jars=[str(jar) for jar in spark_kafka_jars()],
            queries=[
                msgspec.structs.replace(query, topic=query.topic and context.topic(query.topic))
                for query in variants.get(variant, queries)
            ],
        )
        if variant == FORGETFUL:
            remove_checkpoints(folder, queries)
        path = folder / JOB
        path.write_bytes(msgspec.json.encode(job))
        program = [sys.executable, "-m", spark_queries.__name__, str(path)]
        return ["env", f"SPARK_LOCAL_IP={HOST}", *program]

    def describe_missing(context: Context, name: str) -> str:
        log = context.log(name)
        if not log.exists() or READY not in log.read_text(errors="replace"):
            return "its queries have not started"
        folder = context.process_folder(name)
        return lacking_batch(folder, queries, lambda late: unread_records(context, late))

    return AppProcess(command=command, missing=describe_missing, ready_s=READY_S)


def lacking_batch(
    folder: Path, queries: Sequence[Query], unread: Callable[[Sequence[Query]], object]
) -> str:
    """What a session lacks to be ready: the first batch of each query, which may be empty, and
    while records are unread, a batch of the session's own."""
    began_ns = (folder / JOB).stat().st_mtime_ns
    committed_ns = {query: newest_commit_ns(folder / query.name / CHECKPOINT) for query in queries}
    late = [query for query, time_ns in committed_ns.items() if time_ns < began_ns]
    if late and (0 in committed_ns.values() or unread(late)):
        return f"it has committed no batch of {', '.join(query.name for query in late)}"
    return ""


def newest_commit_ns(checkpoint: Path) -> int:
    """When the last batch was committed, by the clock of the file system; 0 before the first."""
    newest = max(checkpoint.glob(COMMITS), key=lambda path: int(path.name), default=None)
    return newest.stat().st_mtime_ns if newest else 0


def remove_checkpoints(folder: Path, queries: Sequence[Query]) -> None:
    """Remove what the queries have read; what they wrote is kept."""
    for query in queries:
        shutil.rmtree(folder / query.name / CHECKPOINT, ignore_errors=True)


def unread_records(context: Context, queries: Sequence[Query]) -> dict[str, int] | str:
    """The records that a query has not committed, by query, topic and partition."""
    remaining: dict[str, int] = {}
    for query in queries:
        folder = context.process_folder(PROCESS) / query.name / CHECKPOINT
        lag = unread(context, committed_positions(folder))
        if isinstance(lag, str):
            return lag
        remaining |= {f"{query.name} {place}": records for place, records in lag.items()}
    return remaining


def committed_positions(checkpoint: Path) -> dict[tuple[str, int], int]:
    """The end of the last committed batch by topic and partition; empty before the first."""
    batches = [int(path.name) for path in checkpoint.glob(COMMITS)]
    if not batches:
        return {}
    lines = (checkpoint / "offsets" / str(max(batches))).read_text().splitlines()
    offsets = msgspec.json.decode(lines[2], type=dict[str, dict[int, int]])
    return {
        (topic, partition): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }


def read_outputs(context: Context, queries: Sequence[Query]) -> Iterator[Output]:
    """The rows of all queries. The sink has the query's name."""
    for query in queries:
        if query.sink == "topic":
            yield from read_topic(context, context.topic(query.topic), query.name)
        else:
            yield from read_files(context.process_folder(PROCESS) / query.name / FILES, query.name)


def read_files(folder: Path, sink: str) -> Iterator[Output]:
    """The lines of the files that the file sink's log lists. Other files are remains of batches
    that were not committed."""
    position = 0
    for path in listed_files(folder):
        for line in path.read_bytes().splitlines():
            row = msgspec.json.decode(line, type=dict[str, str])
            yield Output(sink=sink, position=position, key=row.get("key"), value=row.get("value"))
            position += 1


def listed_files(folder: Path) -> list[Path]:
    """The files of all committed batches, in their order. Every tenth log file repeats the earlier
    ones."""
    batches = {
        int(path.name.removesuffix(".compact")): path
        for path in (folder / "_spark_metadata").glob("[0-9]*")
    }
    compacted = [number for number, path in batches.items() if path.suffix == ".compact"]
    files: list[Path] = []
    for number in sorted(batches):
        if number < max(compacted, default=0):
            continue
        lines = batches[number].read_text().splitlines()
        if lines[0] != VERSION:
            raise ValueError(f"{batches[number]} is not a log of Spark's file sink")
        files += [
            Path(unquote(urlparse(msgspec.json.decode(line)["path"]).path)) for line in lines[1:]
        ]
    return files
