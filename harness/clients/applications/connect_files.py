"""Kafka Connect with Kafka's own file connectors: a topic into a file, and the file into a topic.

    input -> FileStreamSink (at least once) -> file -> FileStreamSource (exactly once) -> copies

The sink may repeat lines after a failure and never skips a record. The source runs with
`exactly.once.source.support`: it writes every line of the file once, in transactions that also hold
its position, so the output has exactly as many copies of a record as the file has lines of it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from urteil.harness.clients.applications.connect import internal_topics, workers
from urteil.harness.clients.applications.connect.lines import read_line
from urteil.harness.clients.applications.connect.rest import RequestRejected, request
from urteil.harness.clients.applications.declaration import Application, Context
from urteil.harness.clients.applications.progress import uncommitted_offsets, uncopied_values
from urteil.harness.clients.applications.result_topics import read_topic
from urteil.harness.clients.payload import decode
from urteil.harness.clients.promises import AT_LEAST_ONCE
from urteil.harness.dependencies.connect import connect_folder
from urteil.harness.evidence.outputs import Output
from urteil.harness.scenario import Scenario

SINK, SOURCE = "file-sink", "file-source"
FILE = "lines.txt"
KAFKA = "org.apache.kafka.connect.file"
VARIANTS = {
    "early-commit": "urteil.connect.EarlyCommitSink",
    "early-offset": "urteil.connect.EarlyOffsetSource",
    "not-transactional": "",
}

CHANGED = {"batch.size": "37"}
"""The setting of the source that changes while it runs."""

BLOCK_BYTES = 1024
QUIET_S = 5.0
"""The source reads the file in blocks. A poll that returns a full batch may keep the last lines of
its block, and later polls return them only when the file grows. Its next session reads them, so the
lab restarts its task when so little remains of a file that has been quiet for several polls."""

EXPECTED = """
SELECT 'file' AS sink, i.topic || '-' || i.partition || '@' || i.off AS key, i.value_id AS value,
  'each' AS mode, 1 AS due FROM inputs i
UNION ALL
SELECT 'copies', o.value_id || ' line ' || ROW_NUMBER() OVER (
    PARTITION BY o.value_id ORDER BY o.position), o.value_id, 'each', 1
FROM outputs o WHERE o.sink = 'file' AND o.value_id IS NOT NULL
"""
"""Each record of the input is a line of the file, and each line is a copy in the output."""
INTERNAL = f"{internal_topics.CONFIGURATIONS} UNION ALL {internal_topics.POSITIONS}"


def _connectors(context: Context) -> dict[str, dict[str, str]]:
    variant, file = workers.variant(context), str(context.folder / FILE)
    sink = (
        VARIANTS["early-commit"]
        if variant == "early-commit"
        else f"{KAFKA}.FileStreamSinkConnector"
    )
    source = (
        VARIANTS["early-offset"]
        if variant == "early-offset"
        else f"{KAFKA}.FileStreamSourceConnector"
    )
    return {
        SINK: {
            "connector.class": sink,
            "tasks.max": "2",
            "topics": ",".join(context.inputs),
            "file": file,
            "consumer.override.auto.offset.reset": "earliest",
            **workers.LINE,
        },
        SOURCE: {
            "connector.class": source,
            "tasks.max": "1",
            "topic": context.outputs[0],
            "file": file,
            "batch.size": "100",
            **workers.LINE,
        },
    }


def _prepare(scenario: Scenario) -> None:
    connect_folder(workers.version(scenario))


def _submit(context: Context) -> None:
    workers.create_connectors(context, _connectors(context))


def _find_remaining(context: Context) -> object:
    """Records without a copy, records that the sink has not committed, or bytes of the file behind
    the source's committed position."""
    idle = workers.restart_failed(context, (SINK, SOURCE))
    unread = _unread_bytes(context)
    if not idle and is_kept(unread, _quiet_s(context)):
        workers.restart_source(context, SOURCE, f"{unread} bytes were unread")
    return (
        uncopied_values(context)
        or idle
        or uncommitted_offsets(context, group=f"connect-{SINK}")
        or unread
    )


def is_kept(unread: int | str, quiet_s: float) -> bool:
    """Whether the source keeps the last lines of the file, unless it is about to write them."""
    return isinstance(unread, int) and 0 < unread <= BLOCK_BYTES and quiet_s > QUIET_S


def _quiet_s(context: Context) -> float:
    """The seconds since the file last grew."""
    file = context.folder / FILE
    return time.time() - file.stat().st_mtime if file.exists() else 0.0


def _unread_bytes(context: Context) -> int | str:
    try:
        answer = request(workers.addresses(context), "GET", f"/connectors/{SOURCE}/offsets")
    except RequestRejected as refused:
        return str(refused)
    positions = [entry["offset"]["position"] for entry in answer["offsets"]]
    file = context.folder / FILE
    return (file.stat().st_size if file.exists() else 0) - max(positions, default=0)


def _outputs(context: Context) -> Iterator[Output]:
    """The lines of the file, and the copies in the output topic."""
    with (context.folder / FILE).open(errors="replace") as file:
        for number, text in enumerate(file, 1):
            line = read_line(context.run, text.rstrip("\n"))
            yield Output(
                sink="file",
                position=number,
                key=line.place if line else f"damaged line {number}",
                value=line.value_id if line else text[:200],
                value_id=line.value_id if line else None,
            )
    copies: Counter[str | None] = Counter()
    (topic,) = context.outputs
    for key, value, output in _records(context, topic):
        value_id = decode(context.run, value, key).value_id
        copies[value_id] += 1
        yield Output(
            sink="copies",
            position=output.position,
            partition=output.partition,
            key=f"{value_id} line {copies[value_id]}",
            value=value_id,
            value_id=value_id,
        )

    offsets = context.topic("offset")
    yield from internal_topics.positions(context, offsets, SOURCE, context.folder / FILE)
    yield from internal_topics.configurations(context, context.topic("config"))


def _records(context: Context, topic: str) -> Iterator[tuple[bytes | None, bytes | None, Output]]:
    for output in read_topic(context, topic, "copies", key=bytes.hex, value=bytes.hex):
        key, value = (None if x is None else bytes.fromhex(x) for x in (output.key, output.value))
        yield key, value, output


APPLICATION = Application(
    name="connect-files",
    about="Kafka Connect copies the input into a file, and the file into the output.",
    processes=(workers.workers(lambda scenario: [workers.lab_plugins(scenario)]),),
    promise=AT_LEAST_ONCE,
    is_ordered=True,
    topics=workers.TOPICS,
    options=(workers.ConnectOptions,),
    prepare=_prepare,
    submit=_submit,
    remaining=_find_remaining,
    outputs=_outputs,
    expected=lambda _scenario: f"{EXPECTED} UNION ALL {INTERNAL}",
    leader=workers.leader,
    acts={
        "reconfigure-source": workers.reconfigure(SOURCE, CHANGED),
        "reconfigure-sink": workers.reconfigure(SINK, {"tasks.max": "3"}),
        "restart-source": workers.restart_task(SOURCE, 0),
        "restart-sink": workers.restart_task(SINK, 0),
    },
    variants=tuple(VARIANTS),
)
