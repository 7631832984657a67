"""Applications of Flink SQL: one JVM with Flink's SQL client and a cluster inside it.

The process runs a script of statements whose last one is an INSERT, which runs until the process
ends. A checkpoint is made every second and kept. Each session of the process continues from the
newest complete checkpoint, as an operator does after the loss of a cluster. A job that fails while
its brokers die is restarted by Flink from its last checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from urteil.harness.clients.applications.declaration import AppProcess, Context
from urteil.harness.clients.applications.progress import open_transactions, uncommitted_offsets
from urteil.harness.clients.options import ApplicationOptions
from urteil.harness.dependencies.flink import flink_classpath
from urteil.harness.dependencies.java import java
from urteil.harness.scenario import Scenario

READY_S = 120.0
FINISHED = "_metadata"
"""The file that a checkpoint has when it is complete."""

SCRIPT = "script.sql"
"""The statements of a session, written when it starts."""

FORGETFUL = "forgetful"
"""The variant whose sessions begin anew, without the checkpoint of the last one."""

OPENED = ("lang", "util", "net", "io", "nio", "time", "util.concurrent", "util.concurrent.atomic")
"""Packages of java.base that Flink's serializers access by reflection."""

CONFIG = """execution.target: local
parallelism.default: 1
taskmanager.numberOfTaskSlots: 2
taskmanager.memory.network.min: 32mb
taskmanager.memory.network.max: 32mb
taskmanager.memory.managed.size: 32mb
execution.checkpointing.interval: 1s
execution.checkpointing.dir: {checkpoints}
execution.checkpointing.externalized-checkpoint-retention: RETAIN_ON_CANCELLATION
execution.checkpointing.num-retained: 3
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 1000
restart-strategy.fixed-delay.delay: 500ms
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
io.tmp.dirs: {temporary}
"""

LOGGING = """rootLogger.level = INFO
rootLogger.appenderRef.out.ref = Out
appender.out.name = Out
appender.out.type = CONSOLE
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %p %c{1} %m%n
logger.kafka.name = org.apache.kafka
logger.kafka.level = WARN
"""

SOURCE = """
CREATE TABLE {name} ({columns}) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}',
  'properties.group.id' = '{group}', 'properties.isolation.level' = 'read_committed',
  'scan.startup.mode' = 'earliest-offset', 'key.format' = 'raw', 'key.fields' = 'key',
  'value.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
"""

SINK = """
CREATE TABLE {name} (key {type}, `value` {type}) WITH (
  'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{group}-{name}',
  'properties.transaction.timeout.ms' = '60000', 'key.format' = 'raw', 'key.fields' = 'key',
  'value.format' = 'raw', 'value.fields-include' = 'EXCEPT_KEY');
"""


def fetch_parts(_scenario: Scenario) -> None:
    """Fetch Flink and its connector."""
    java()
    flink_classpath()


def source(context: Context, name: str, topic: str, columns: str) -> str:
    """The statement of a table over a topic of the input. `columns` declares `key`, `value` and
    what else the query reads."""
    return SOURCE.format(
        name=name, columns=columns, topic=topic, servers=context.servers, group=context.group
    )


def sink(context: Context, name: str, topic: str, column_type: str) -> str:
    """The statement of a table that writes a topic exactly once, with keys and values of a type."""
    return SINK.format(
        name=name, type=column_type, topic=topic, servers=context.servers, group=context.group
    )


def flink_process(script: Callable[[Context], str]) -> AppProcess:
    """The process of an application with this script."""

    def command(context: Context, name: str) -> list[str]:
        folder = context.process_folder(name)
        is_forgetful = ApplicationOptions.of(context.load).variant == FORGETFUL
        checkpoint = None if is_forgetful else newest_checkpoint(folder)
        return _command(context, name, script(context), checkpoint)

    def describe_missing(context: Context, name: str) -> str:
        return lacking_checkpoint(context.process_folder(name))

    return AppProcess(command=command, missing=describe_missing, ready_s=READY_S)


def newest_checkpoint(folder: Path) -> Path | None:
    """The complete checkpoint with the newest metadata; None before the first."""
    complete = list((folder / "checkpoints").glob(f"*/chk-*/{FINISHED}"))
    newest = max(complete, key=lambda path: path.stat().st_mtime_ns, default=None)
    return newest.parent if newest else None


def lacking_checkpoint(folder: Path) -> str:
    """What a session lacks to be ready: a checkpoint of its own."""
    newest = newest_checkpoint(folder)
    began_ns = (folder / SCRIPT).stat().st_mtime_ns
    is_own = newest is not None and (newest / FINISHED).stat().st_mtime_ns > began_ns
    return "" if is_own else "it has completed no checkpoint"


def remaining_with_transactions(context: Context, *outputs: str) -> dict[str, int] | str:
    """What the job has not read by a checkpoint, or has written to its topics and not committed."""
    return uncommitted_offsets(context) or open_transactions(context, outputs)


def _command(context: Context, name: str, script: str, checkpoint: Path | None) -> list[str]:
    folder, temporary = context.process_folder(name), context.temporary(name)
    settings = CONFIG.format(checkpoints=(folder / "checkpoints").as_uri(), temporary=temporary)
    (folder / "config.yaml").write_text(settings)
    logging = folder / "log4j2.properties"
    logging.write_text(LOGGING)
    statements = ["SET 'table.dml-sync' = 'true';"]
    if checkpoint:
        statements.append(f"SET 'execution.state-recovery.path' = '{checkpoint.as_uri()}';")
    (folder / SCRIPT).write_text("\n".join([*statements, script]))
    return [
        "env",
        f"FLINK_CONF_DIR={folder}",
        *context.jvm(name, "700m"),
        *(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in OPENED),
        f"-Dlog4j.configurationFile={logging}",
        "-cp",
        flink_classpath(),
        "org.apache.flink.table.client.SqlClient",
        "embedded",
        "--history",
        str(folder / "history"),
        "-f",
        str(folder / SCRIPT),
    ]
