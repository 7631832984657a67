"""Apache Kafka from Maven Central: the reference target and its tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from urteil.harness.dependencies.class_data_sharing import (
    archive_option,
    free_port,
    shared_classes,
    temporary_server,
)
from urteil.harness.dependencies.installation import (
    Dependency,
    MissingDependency,
    cache_dir,
    install_once,
)
from urteil.harness.dependencies.java import QUICK_START, java
from urteil.harness.dependencies.kafka_logging import kafka_logging
from urteil.harness.dependencies.kafka_releases import NEWEST, release_line, releases
from urteil.harness.dependencies.kraft_storage import format_directory, write_formatted
from urteil.harness.dependencies.maven import compose_pom, copy_dependencies
from urteil.harness.dependencies.zookeeper import short_zookeeper

VERSION = NEWEST
HOW = (
    "it comes from Maven Central by compose/kafka/pom.xml: install Maven, for example with "
    "`apt-get install maven` or `brew install maven`; only `--target kafka` needs it"
)
FORMATTED = "formatted"
CONTROLLER_LISTENER = "CONTROLLER"


def kafka_classpath(version: str = VERSION) -> str:
    """Class path of Apache Kafka's broker and tools, downloaded on first use."""
    folder = install_once(_target(version), lambda temporary: _fetch(version, temporary))
    return str(folder / "*")


def kafka_jar(name: str, version: str = VERSION) -> Path:
    """One of the release's own jars, such as `kafka-clients`, downloaded on first use."""
    kafka_classpath(version)
    return _target(version) / f"{name}-{version}.jar"


def kafka_classes(version: str = VERSION) -> list[str]:
    """JVM options that load Kafka's classes from an archive, for a faster start of a broker or a
    tool. Writes the archive on first use. May be empty."""
    lay = partial(write_kafka_archive, version=version, classpath=kafka_classpath(version))
    return shared_classes(_target(version), lay)


def kafka_format(version: str = VERSION) -> Path | None:
    """The files of a formatted log directory, besides `meta.properties`; None for a release that
    needs none (`kraft_storage`). Downloads the release on first use."""
    kafka_classpath(version)
    folder = _target(version) / FORMATTED
    return folder if folder.exists() else None


def write_kafka_archive(
    folder: Path, *, version: str, classpath: str, cwd: Path | None = None
) -> None:
    """Archive the classes of a broker with this class path, which `cwd` may begin."""
    port = free_port()
    argv = [archive_option(folder), "-cp", classpath, "kafka.Kafka"]
    listener = f"PLAINTEXT://127.0.0.1:{port}"
    if not release_line(version).has_zookeeper:
        controller = free_port()
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"{listener},{CONTROLLER_LISTENER}://127.0.0.1:{controller}",
            "controller.listener.names": CONTROLLER_LISTENER,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        }

        def format_data(data: Path) -> None:
            format_directory(data, kafka_format(version), node_id=1, name="archive")

        with temporary_server(argv, settings, "log.dirs", port, prepare=format_data, cwd=cwd):
            return
    with short_zookeeper() as zookeeper:
        settings = {
            "broker.id": 1,
            "listeners": listener,
            "zookeeper.connect": f"127.0.0.1:{zookeeper}",
        }
        with temporary_server(argv, settings, "log.dirs", port, cwd=cwd):
            pass


def kafka_tool(main_class: str, args: Sequence[str], version: str = VERSION) -> list[str]:
    """argv of one of Kafka's tools, as `kafka_tool("kafka.tools.DumpLogSegments", [...])`."""
    classpath = kafka_classpath(version)
    logging = kafka_logging(version)
    options = ["-Xmx256m", *QUICK_START, *kafka_classes(version)]
    return [
        java(),
        *options,
        logging.jvm_option(_target(version) / logging.tool_file),
        "-cp",
        classpath,
        main_class,
        *args,
    ]


def describe_kafka(version: str = VERSION) -> Dependency:
    """The release `version`, and the older ones that this machine has."""
    is_installed = _target(version).exists()
    others = [release for release in releases() if release != version and _target(release).exists()]
    installed = [version] * is_installed + others
    return Dependency(
        name="kafka",
        found=is_installed,
        version=", ".join(installed),
        where=str(_target(installed[0])) if installed else "",
        how=HOW,
        required=False,
    )


def _target(version: str) -> Path:
    return cache_dir() / f"kafka-{version}"


def _fetch(version: str, folder: Path) -> None:
    line = release_line(version)
    options = [f"-Dkafka.version={version}", *line.maven_options]
    copy_dependencies("kafka", compose_pom("kafka"), folder, how=HOW, options=options)
    jar = f"kafka_{line.scala}-{version}.jar"
    if not (folder / jar).exists():
        raise MissingDependency("kafka", f"{HOW}; Maven fetched no {jar}")
    logging = kafka_logging(version)
    (folder / logging.tool_file).write_text(logging.tool)
    if not line.has_zookeeper:
        write_formatted(str(folder / "*"), folder / FORMATTED)
