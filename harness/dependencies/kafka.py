"""Apache Kafka from Maven Central: the reference target and its tools."""

from __future__ import annotations

from collections.abc import Sequence
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
from urteil.harness.dependencies.kafka_releases import NEWEST, release_line, releases
from urteil.harness.dependencies.maven import compose_pom, copy_dependencies
from urteil.harness.dependencies.zookeeper import short_zookeeper

VERSION = NEWEST
HOW = (
    "it comes from Maven Central by compose/kafka/pom.xml: install Maven, for example with "
    "`apt-get install maven` or `brew install maven`; only `--target kafka` needs it"
)
TOOL_LOGGING = """log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d{ISO8601} %p %c{1} %m%n
"""


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
    kafka_classpath(version)
    return shared_classes(_target(version), lambda folder: _write_archive(folder, version))


def _write_archive(folder: Path, version: str) -> None:
    with short_zookeeper() as zookeeper:
        port = free_port()
        settings = {
            "broker.id": 1,
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "zookeeper.connect": f"127.0.0.1:{zookeeper}",
        }
        argv = [archive_option(folder), "-cp", kafka_classpath(version), "kafka.Kafka"]
        with temporary_server(argv, settings, "log.dirs", port):
            pass


def kafka_tool(main_class: str, args: Sequence[str], version: str = VERSION) -> list[str]:
    """argv of one of Kafka's tools, as `kafka_tool("kafka.tools.DumpLogSegments", [...])`."""
    classpath = kafka_classpath(version)
    logging = _target(version) / "tool-log4j.properties"
    options = ["-Xmx256m", *QUICK_START, *kafka_classes(version)]
    return [
        java(),
        *options,
        f"-Dlog4j.configuration=file:{logging}",
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
    (folder / "tool-log4j.properties").write_text(TOOL_LOGGING)
