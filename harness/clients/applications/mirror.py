"""MirrorMaker 2 in its dedicated mode, from the first cluster to the second, or both ways.

Its process runs at the second cluster and reaches the first over the links `wan`. It mirrors the
topic `urteil` of `east` as `east.urteil` in `west`, with its settings and ACLs, and translates the
committed offsets of the run's group. A topic of the application's own, `followed`, has no records:
MirrorMaker creates its mirror, and must carry a change of its settings and an ACL over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import KafkaError
from msgspec import Meta

from urteil.chaos.topology import EAST, WEST
from urteil.harness.clients.applications.declaration import Application, AppProcess, Context
from urteil.harness.clients.applications.progress import uncopied_values
from urteil.harness.clients.options import ApplicationOptions, WorkloadOptions
from urteil.harness.dependencies.connect import logging_option
from urteil.harness.dependencies.mirror import VERSION, mirror_folder
from urteil.harness.evidence.outputs import Output
from urteil.harness.scenario import Scenario, TopicSpec

FOLLOWED = "followed"
PARTITIONS = 2
CHANGED = {"max.message.bytes": "600000"}
"""The setting that changes while MirrorMaker runs."""
SETTINGS = {"cleanup.policy": "compact", **CHANGED}
PRINCIPAL = "User:alice"
SINK = "mirrored settings"
REPLICAS = 2
"""Of the topics that MirrorMaker creates: the second cluster has two brokers."""
TIMEOUT_MS = 10_000
WORKER = {
    "offset.flush.interval.ms": "2000",
    "scheduled.rebalance.max.delay.ms": "1000",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1500",
    "plugin.discovery": "service_load",
}
"""Settings of Connect's workers, one of which each direction has."""
TASK_FAILED = re.compile(
    r"ERROR .*? (\w+\{id=[^}]+\}) Task threw an uncaught and unrecoverable exception"
)
"""Connect's log entry of a failed task. With exactly once a task fails when its producer is fenced,
for instance by the coordinator after a transaction that outlasts `transaction.timeout.ms`."""

MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"


BUGS = {
    "translates_too_far": {"forwarding.admin.class": "urteil.mirror.TranslatesTooFar"},
    "skips_after_restart": {
        f"{EAST}.consumer.interceptor.classes": "urteil.mirror.SkipsAfterRestart"
    },
}
"""The settings by which MirrorMaker loads each seeded bug (compose/mirror/src)."""


class MirrorOptions(WorkloadOptions, frozen=True):
    """Options of the application `mirror`."""

    both_ways: Annotated[
        bool, Meta(description="Topics of the second cluster are mirrored to the first, too.")
    ] = False
    exactly_once: Annotated[
        bool, Meta(description="MirrorMaker has `exactly.once.source.support` (KIP-618).")
    ] = False
    mirror: Annotated[
        str, Meta(pattern=r"^\d+(\.\d+)+$", description="The release of MirrorMaker.")
    ] = VERSION


def properties(context: Context, name: str) -> dict[str, str]:
    """MirrorMaker's property file: short intervals, and replicas for the smaller cluster."""
    options = MirrorOptions.of(context.load)
    internal = ("checkpoints", "offset-syncs", "heartbeats")
    stores = ("offset", "status", "config")
    settings = {
        "clusters": f"{EAST}, {WEST}",
        f"{EAST}.bootstrap.servers": ",".join(context.wan_bootstrap),
        f"{WEST}.bootstrap.servers": ",".join(context.second_bootstrap),
        f"{EAST}->{WEST}.enabled": "true",
        f"{WEST}->{EAST}.enabled": str(options.both_ways).lower(),
        "emit.heartbeats.enabled": "false",
        "topics": "urteil.*",
        "groups": "urteil.*",
        "replication.factor": str(REPLICAS),
        **{f"{topic}.topic.replication.factor": str(REPLICAS) for topic in internal},
        **{f"{store}.storage.replication.factor": str(REPLICAS) for store in stores},
        "offset.storage.partitions": "3",
        "status.storage.partitions": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "refresh.topics.interval.seconds": "3",
        "refresh.groups.interval.seconds": "3",
        "sync.topic.configs.interval.seconds": "3",
        "sync.topic.acls.interval.seconds": "3",
        "offset.lag.max": "10",
        "tasks.max": "2",
        **{f"{cluster}.{key}": value for cluster in (EAST, WEST) for key, value in WORKER.items()},
        f"{EAST}.consumer.metadata.max.age.ms": "3000",
    }
    settings |= BUGS.get(ApplicationOptions.of(context.load).variant, {})
    if options.exactly_once:
        settings |= {
            **{f"{cluster}.producer.transaction.timeout.ms": "6000" for cluster in (EAST, WEST)},
            f"{WEST}.exactly.once.source.support": "enabled",
            f"{EAST}.exactly.once.source.support": "enabled",
            "dedicated.mode.enable.internal.rest": "true",
            "listeners": f"http://{context.address(name)}",
        }
    return settings


def command(context: Context, name: str) -> list[str]:
    """The command of one session of MirrorMaker."""
    file = context.process_folder(name) / "mirror.properties"
    lines = (f"{key} = {value}\n" for key, value in properties(context, name).items())
    file.write_text("".join(lines))
    folder = _folder(context.scenario)
    targets = [] if MirrorOptions.of(context.load).both_ways else ["--clusters", WEST]
    return [
        *(*context.jvm(name, "256m"), logging_option(folder)),
        *("-cp", f"{folder}/jars/*:{folder}/bugs", MAIN, str(file), *targets),
    ]


def _folder(scenario: Scenario) -> Path:
    return mirror_folder(MirrorOptions.of(scenario.workload).mirror)


def mirror_name(topic: str) -> str:
    """The name of the mirror of a topic of the first cluster (`DefaultReplicationPolicy`)."""
    return f"{EAST}.{topic}"


def describe_missing(context: Context, name: str) -> str:
    """What a session lacks to be ready: tasks that replicate, and at first the mirror of the
    followed topic."""
    log = context.log(name)
    text = log.read_text(errors="replace") if log.exists() else ""
    both_ways = MirrorOptions.of(context.load).both_ways
    for way in (f"{EAST}->{WEST}", *([f"{WEST}->{EAST}"] if both_ways else [])):
        if not re.search(rf"replicating \d+ topic-partitions {way}", text):
            return f"no task replicates {way}"
    topic = mirror_name(context.topic(FOLLOWED))
    try:
        with closing(_admin(context.second_bootstrap)) as admin:
            return "" if topic in admin.list_topics() else f"{WEST} has no topic {topic}"
    except KafkaError as error:
        return f"{WEST} does not answer: {error}"


def describe_failure(context: Context, name: str) -> str:
    """The tasks of a session that have failed. Connect leaves a failed task to its operator, and in
    the dedicated mode a restart of the process is the only remedy."""
    text = context.log(name).read_text(errors="replace")
    return ", ".join(f"{task} has failed" for task in sorted(set(TASK_FAILED.findall(text))))


def change_followed(context: Context) -> None:
    """Change a setting of the followed topic, and grant an ACL on it."""
    topic = context.topic(FOLLOWED)
    acl = ACL(
        PRINCIPAL, "*", ACLOperation.ALL, ACLPermissionType.ALLOW,
        ResourcePattern(ResourceType.TOPIC, topic),
    )  # fmt: skip
    with closing(_admin(context.bootstrap)) as admin:
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=CHANGED)])
        admin.create_acls([acl])


def read_followed_mirror(context: Context) -> dict[str, str]:
    """Settings, partitions and ACLs of the mirror of the followed topic in the second cluster."""
    topic = mirror_name(context.topic(FOLLOWED))
    with closing(_admin(context.second_bootstrap)) as admin:
        (described,) = admin.describe_topics([topic])
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        configs: Any = admin.describe_configs([resource], config_filter="all")
        acl_filter = ACLFilter(
            None, None, ACLOperation.ANY, ACLPermissionType.ANY,
            ResourcePatternFilter(ResourceType.TOPIC, topic, ACLResourcePatternType.LITERAL),
        )  # fmt: skip
        acls, _ = admin.describe_acls(acl_filter)
    values = configs["topic"][topic]
    return {
        "partitions": str(len(described["partitions"])),
        **{name: str(values[name]["value"]) for name in SETTINGS},
        **{f"ACL of {acl.principal}": acl.operation.name for acl in acls},
    }


def expected_settings() -> dict[str, str]:
    """The mirror of the followed topic as it must be. A grant of ALL becomes one of READ, since
    only MirrorMaker writes to mirrors."""
    return {"partitions": str(PARTITIONS), **SETTINGS, f"ACL of {PRINCIPAL}": "READ"}


def find_remaining(context: Context) -> set[str]:
    """Records without a copy, and settings that have not followed."""
    try:
        settings = read_followed_mirror(context)
    except KafkaError as error:
        return {f"{WEST} does not answer: {error}"}
    late = {name for name, value in expected_settings().items() if settings.get(name) != value}
    return uncopied_values(context) | late


def outputs(context: Context) -> Iterable[Output]:
    """The settings of the mirror of the followed topic, a row for each."""
    for position, (name, value) in enumerate(read_followed_mirror(context).items()):
        yield Output(sink=SINK, position=position, key=name, value=value)


def expected_rows(_scenario: Scenario) -> str:
    """The rows of `outputs` as they must be."""
    return "\nUNION ALL\n".join(
        f"SELECT '{SINK}' AS sink, '{name}' AS key, '{value}' AS value, 'latest' AS mode, 1 AS due"
        for name, value in expected_settings().items()
    )


def _admin(bootstrap: tuple[str, ...]) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=list(bootstrap), request_timeout_ms=TIMEOUT_MS)


APPLICATION = Application(
    name="mirror",
    about="MirrorMaker 2, from the first cluster to the second, or both ways",
    processes=(AppProcess(command=command, missing=describe_missing, failure=describe_failure),),
    is_ordered=True,
    topics=(
        TopicSpec(
            name=FOLLOWED,
            partitions=PARTITIONS,
            config={"cleanup.policy": "compact", "max.message.bytes": "500000"},
        ),
    ),
    options=(MirrorOptions,),
    prepare=_folder,
    submit=change_followed,
    remaining=find_remaining,
    outputs=outputs,
    expected=expected_rows,
    variants=tuple(BUGS),
    bugs_show_in=("mirror-passive",),
)
