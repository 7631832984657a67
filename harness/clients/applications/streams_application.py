"""What the applications of Kafka Streams share: processes, settings, progress, results.

An application has two instances with a standby of each store, processes exactly once (KIP-447), and
writes to one result topic. An instance keeps its stores under its folder in the run; its process id
is fixed, so that its transactional id, and with it the coordinator, can be a fault's target.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from urteil.harness.clients.applications.declaration import (
    Application,
    AppProcess,
    Context,
)
from urteil.harness.clients.applications.progress import last_logged, uncommitted_offsets
from urteil.harness.clients.applications.result_topics import Decode, read_topic
from urteil.harness.clients.options import ApplicationOptions, WorkloadOptions
from urteil.harness.clients.promises import EXACTLY_ONCE
from urteil.harness.clients.spec import client_number
from urteil.harness.dependencies.streams import VERSION, streams_classpath
from urteil.harness.evidence.outputs import Output
from urteil.harness.scenario import Scenario, TopicSpec

RUNNING = "urteil: RUNNING"
leader = last_logged("Finished assignment for group at generation")
"""The instance that leads the application's group."""

STATE = "state"
RESULTS = "results"
WITHOUT_TRANSACTIONS = "forgets_transactions"
"""The variant that processes at least once and promises exactly once."""


class StreamsOptions(WorkloadOptions, frozen=True):
    """Options of the applications of Kafka Streams."""

    streams_version: Annotated[
        str, Meta(description="The release of Kafka Streams, from 3.9.1 on.")
    ] = VERSION


def process_id(name: str) -> str:
    """The process id of an instance, which Streams reads from its state."""
    return f"00000000-0000-0000-0000-{client_number(name):012d}"


def first_transactional_id(group: str, name: str) -> str:
    """The transactional id of the first thread of an instance."""
    return f"{group}-{process_id(name)}-1"


def streams_application(
    name: str,
    about: str,
    *,
    topology: str,
    expected: Callable[[Scenario], str],
    value: Decode,
    variants: tuple[str, ...] = (),
) -> Application:
    """The application that runs a topology of compose/streams/src, and what it must compute."""

    def command(context: Context, process: str) -> list[str]:
        return _command(context, process, topology)

    def outputs(context: Context) -> Iterator[Output]:
        return read_topic(context, context.topic(RESULTS), RESULTS, value=value)

    return Application(
        name=name,
        about=about,
        processes=(
            AppProcess(
                count=lambda scenario: ApplicationOptions.of(scenario.workload).apps,
                command=command,
                missing=_describe_missing,
                stores=(STATE,),
            ),
        ),
        promise=EXACTLY_ONCE,
        topics=(TopicSpec(name=RESULTS, config={"min.insync.replicas": "2"}),),
        options=(StreamsOptions,),
        prepare=_program,
        remaining=uncommitted_offsets,
        outputs=outputs,
        expected=expected,
        leader=leader,
        variants=variants,
    )


def _program(scenario: Scenario) -> str:
    """The class path of the compiled program."""
    return streams_classpath(StreamsOptions.of(scenario.workload).streams_version)


def _command(context: Context, process: str, topology: str) -> list[str]:
    variant = ApplicationOptions.of(context.load).variant
    properties = write_settings(context, process, variant)
    argv = [*java_command(context, process, _program(context.scenario)), "StreamsApplication"]
    argv += [topology, str(properties), variant or "none"]
    return [*argv, context.topic(RESULTS), *context.inputs]


def java_command(context: Context, process: str, classpath: str) -> list[str]:
    """The JVM of an instance, whose log has times."""
    logging = ("showDateTime=true", "dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS")
    options = [f"-Dorg.slf4j.simpleLogger.{setting}" for setting in logging]
    return [*context.jvm(process, "192m"), *options, "-cp", classpath]


def write_settings(context: Context, process: str, variant: str = "") -> Path:
    """The file with the properties of an instance, whose process id is fixed beside it."""
    properties = context.process_folder(process) / "streams.properties"
    lines = (f"{key}={value}" for key, value in _settings(context, process, variant).items())
    properties.write_text("\n".join(lines) + "\n")
    _fix_process_id(context, process)
    return properties


def _settings(context: Context, process: str, variant: str) -> dict[str, str | int]:
    promise = "at_least_once" if variant == WITHOUT_TRANSACTIONS else "exactly_once_v2"
    return {
        "bootstrap.servers": context.servers,
        "application.id": context.group,
        "client.id": process,
        "processing.guarantee": promise,
        "commit.interval.ms": 10_000 if variant == WITHOUT_TRANSACTIONS else 500,
        "state.dir": str(context.process_folder(process) / STATE),
        "replication.factor": 3,
        "num.standby.replicas": 1,
        "num.stream.threads": 1,
        "consumer.auto.offset.reset": "earliest",
        "consumer.session.timeout.ms": 6_000,
        "consumer.heartbeat.interval.ms": 1_000,
        "producer.transaction.timeout.ms": 10_000,
        "topic.min.insync.replicas": 2,
    }


def _fix_process_id(context: Context, process: str) -> None:
    folder = context.process_folder(process) / STATE / context.group
    folder.mkdir(parents=True, exist_ok=True)
    identity = {"processId": process_id(process)}
    (folder / "kafka-streams-process-metadata").write_text(json.dumps(identity))


def _describe_missing(context: Context, process: str) -> str:
    log = context.log(process)
    is_running = log.exists() and RUNNING in log.read_text(errors="replace")
    return "" if is_running else "Streams has not reported RUNNING"
