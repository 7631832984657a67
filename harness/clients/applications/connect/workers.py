"""Connect's distributed workers: commands, readiness, connectors, and their leader.

All workers share a group and three internal topics, which the run creates: configurations, offsets
of sources, and states. Connectors are created by REST when all workers are ready. A task that fails
stays failed until an operator restarts it, as it may when a broker or a database dies; the lab is
this operator once the faults are over, and `admin.log` in the application's folder names each
restart.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import not_
from typing import Annotated, Any

from msgspec import Meta

from urteil.chaos.observations import LabFailure
from urteil.chaos.waiting import until
from urteil.harness.clients.applications.connect.internal_topics import configure
from urteil.harness.clients.applications.connect.rest import (
    RequestRejected,
    persist,
    request,
    states,
)
from urteil.harness.clients.applications.declaration import (
    ADMIN_LOG,
    AppProcess,
    Context,
    own_topic,
)
from urteil.harness.clients.options import ApplicationOptions, WorkloadOptions
from urteil.harness.dependencies.connect import VERSION, connect_folder, logging_option
from urteil.harness.scenario import Scenario, TopicSpec

PREFIX = "w"
READY_S = 60.0
RESTART_S = 5.0
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
LINE = {"transforms": "line", "transforms.line.type": "urteil.connect.Line"}
"""The settings of a connector by which it carries records as lines of text."""

COMPACTED = {"cleanup.policy": "compact", "min.insync.replicas": "2"}
INTERNAL = {"config": 1, "offset": 3, "status": 3}
"""Connect's internal topics by their setting's name, each with its number of partitions."""

TOPICS = tuple(
    TopicSpec(name=name, partitions=partitions, config=COMPACTED)
    for name, partitions in INTERNAL.items()
)


class ConnectOptions(WorkloadOptions, frozen=True):
    """Options of Kafka Connect."""

    connect: Annotated[
        str, Meta(pattern=r"^\d+(\.\d+)+$", description="The release of Kafka Connect.")
    ] = VERSION


Connectors = Callable[[Context], Mapping[str, dict[str, str]]]
"""The configurations of an application's connectors by name."""


def workers(plugins: Callable[[Scenario], Sequence[str]]) -> AppProcess:
    """The workers of an application; `plugins` are the folders of its connectors."""

    def command(context: Context, name: str) -> Sequence[str]:
        return _command(context, name, plugins(context.scenario))

    return AppProcess(
        prefix=PREFIX,
        role="worker",
        count=lambda scenario: ApplicationOptions.of(scenario.workload).apps,
        command=command,
        missing=_describe_missing,
    )


def version(scenario: Scenario) -> str:
    """The release of Connect that the scenario runs."""
    return ConnectOptions.of(scenario.workload).connect


def lab_plugins(scenario: Scenario) -> str:
    """The folder of the lab's own plugins."""
    return str(connect_folder(version(scenario)) / "plugins")


def _command(context: Context, name: str, plugins: Sequence[str]) -> list[str]:
    folder = connect_folder(version(context.scenario))
    file = context.process_folder(name) / "worker.properties"
    lines = [f"{key}={value}" for key, value in settings(context, name, plugins).items()]
    file.write_text("\n".join(lines) + "\n")
    return [
        *context.jvm(name, "256m"),
        logging_option(folder),
        "-cp",
        str(folder / "jars" / "*"),
        "org.apache.kafka.connect.cli.ConnectDistributed",
        str(file),
    ]


def settings(context: Context, name: str, plugins: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap.servers": context.servers,
        "group.id": context.group,
        "listeners": f"http://{context.address(name)}",
        "rest.advertised.host.name": "127.0.0.1",
        "rest.advertised.port": context.port(name),
        "key.converter": BYTES,
        "value.converter": BYTES,
        "exactly.once.source.support": (
            "disabled" if variant(context) == "not-transactional" else "enabled"
        ),
        "offset.flush.interval.ms": 2_000,
        "scheduled.rebalance.max.delay.ms": 2_000,
        "session.timeout.ms": 6_000,
        "heartbeat.interval.ms": 1_000,
        # a sink's tasks are a group of their own, which waits for the consumer of a dead worker
        "consumer.session.timeout.ms": 6_000,
        "consumer.heartbeat.interval.ms": 1_000,
        "rebalance.timeout.ms": 10_000,
        "task.shutdown.graceful.timeout.ms": 5_000,
        "plugin.path": ",".join(plugins),
        "plugin.discovery": "service_load",
    }
    for topic, partitions in INTERNAL.items():
        settings[f"{topic}.storage.topic"] = own_topic(context.load, topic)
        settings[f"{topic}.storage.replication.factor"] = 3
        if partitions > 1:
            settings[f"{topic}.storage.partitions"] = partitions
    return settings


def variant(context: Context) -> str:
    """The seeded bug of the run's application; empty for none."""
    return ApplicationOptions.of(context.load).variant


def addresses(context: Context) -> list[str]:
    """The REST addresses of all workers."""
    count = ApplicationOptions.of(context.load).apps
    return [context.address(f"{PREFIX}{number}") for number in range(1, count + 1)]


def _describe_missing(context: Context, name: str) -> str:
    """A worker serves `/connectors` when it has joined its group and read the internal topics."""
    try:
        request([context.address(name)], "GET", "/connectors")
    except RequestRejected as refused:
        return str(refused)
    return ""


def create_connectors(context: Context, connectors: Mapping[str, dict[str, str]]) -> None:
    """Create the connectors and wait until they run. LabFailure, with the trace of a task that
    failed, if they do not."""
    for name, settings in connectors.items():
        configure(context, addresses(context), name, settings)
    for name in connectors:
        idle = until(partial(_not_running, context, name), not_, deadline_s=READY_S, poll_s=0.5)
        if idle:
            raise LabFailure(f"connector {name} did not run in {READY_S:g} s: {idle}")


def _not_running(context: Context, name: str) -> str:
    """What keeps a connector from running: an error, or states with the trace of a failure."""
    try:
        status = request(addresses(context), "GET", f"/connectors/{name}/status")
    except RequestRejected as refused:
        return str(refused)
    if not status["tasks"]:
        return "it has no tasks"
    worker_states = [status["connector"], *status["tasks"]]
    return "; ".join(
        f"{part['state']} {part.get('trace', '')[:500]}"
        for part in worker_states
        if part["state"] != "RUNNING"
    )


def restart_failed(context: Context, connectors: Sequence[str]) -> str:
    """Restart failed connectors and tasks. Returns what is not running as a phrase."""
    idle = []
    for name in connectors:
        try:
            states_by_part = states(
                request(addresses(context), "GET", f"/connectors/{name}/status")
            )
            if "FAILED" in states_by_part.values() and _may_restart(context):
                path = f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true"
                request(addresses(context), "POST", path)
                with (context.folder / ADMIN_LOG).open("a") as log:
                    log.write(f"restarted {name}: {states_by_part}\n")
        except RequestRejected as refused:
            idle.append(str(refused))
        else:
            idle += [f"{name} {part} is {state}" for part, state in states_by_part.items()
                     if state != "RUNNING"]  # fmt: skip
    return ", ".join(idle)


def restart_source(context: Context, connector: str, reason: str) -> None:
    """Restart the only task of a source, unless the last restart may still have an effect. What
    Connect refuses now is asked again when the caller next looks."""
    if not _may_restart(context):
        return
    with contextlib.suppress(RequestRejected):
        request(addresses(context), "POST", f"/connectors/{connector}/tasks/0/restart")
        with (context.folder / ADMIN_LOG).open("a") as log:
            log.write(f"restarted {connector}: {reason}\n")


def _may_restart(context: Context) -> bool:
    """Whether the last restart is long enough ago to have had an effect."""
    log = context.folder / ADMIN_LOG
    return not log.exists() or time.time() - log.stat().st_mtime > RESTART_S


def reconfigure(connector: str, settings: Mapping[str, str]) -> Callable[[Context], str]:
    """An act: a connector gets these settings in addition, while it runs."""

    def act(context: Context) -> str:
        path = f"/connectors/{connector}/config"
        old = persist(addresses(context), "GET", path)
        configure(context, addresses(context), connector, {**old, **settings})
        new = persist(addresses(context), "GET", path)
        changed = [f"{key}={new[key]} (was {old.get(key)})" for key in settings
                   if new.get(key) != old.get(key)]  # fmt: skip
        return f"{connector}: {', '.join(changed)}" if changed else ""

    return act


def restart_task(connector: str, task: int) -> Callable[[Context], str]:
    """An act: a task of a connector is restarted while it runs."""

    def act(context: Context) -> str:
        path = f"/connectors/{connector}/tasks/{task}"
        before = persist(addresses(context), "GET", f"{path}/status")
        persist(addresses(context), "POST", f"{path}/restart")
        return f"{connector}: task {task} was {before['state']}, restart accepted"

    return act


def leader(context: Context, running: Sequence[str]) -> str | None:
    """The running worker that leads the group, by the address that the last rebalance named."""
    last = ("", "")
    for name in running:
        for line in context.log(name).read_text(errors="replace").splitlines():
            match = re.search(r"Joined group .*leaderUrl='http://127\.0\.0\.1:(\d+)/'", line)
            if match:
                last = max(last, (line[:23], match[1]))
    return next((name for name in running if str(context.port(name)) == last[1]), None)
