"""Kafka Connect from Maven Central, the lab's own plugins for it, and a connector for databases."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from urteil.harness.dependencies.installation import (
    Dependency,
    MissingDependency,
    cache_dir,
    describe_folders,
    install_once,
    run,
)
from urteil.harness.dependencies.java import java
from urteil.harness.dependencies.maven import compose_pom, copy_dependencies

NAME = "kafka-connect"
VERSION = "3.9.1"
HOW = (
    "it comes from Maven Central by compose/connect/pom.xml: install Maven, for example with "
    "`apt-get install maven`; only scenarios with Kafka Connect need it"
)
JDBC_HOW = (
    "it comes from Maven Central by compose/connect/jdbc/pom.xml; only scenarios with a database "
    "need it"
)
LOGGING = {
    "log4j.properties": """log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d{ISO8601} %p %c{1} %m%n
log4j.logger.org.apache.kafka.clients=WARN
log4j.logger.org.apache.kafka.common=WARN
""",
    "log4j2.properties": """rootLogger.level=info
rootLogger.appenderRef.stdout.ref=stdout
appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=%d{ISO8601} %p %c{1} %m%n
logger.clients.name=org.apache.kafka.clients
logger.clients.level=warn
logger.common.name=org.apache.kafka.common
logger.common.level=warn
""",
}
"""Configurations of the loggers before and from release 4.0, in one format of lines."""


def connect_folder(version: str = VERSION) -> Path:
    """The folder with Connect's jars in `jars` and the lab's compiled plugins in `plugins/lab`.

    Fetched and compiled on first use. MissingDependency names a version that Maven Central lacks.
    """
    return install_once(_target(version), lambda folder: _install(version, folder))


def describe_connect() -> Dependency:
    """One line of `urteil doctor`."""
    return describe_folders(NAME, VERSION, _target(VERSION), how=HOW)


def _source() -> Path:
    return compose_pom("connect").with_name("src")


def _target(version: str) -> Path:
    digest = hashlib.sha256(compose_pom("connect").read_bytes() + repr(LOGGING).encode())
    for path in sorted(path for path in _source().rglob("*") if path.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return cache_dir() / f"connect-{version}-{digest.hexdigest()[:12]}"


def jdbc_folder() -> Path:
    """A folder of plugins with Debezium's JDBC sink, fetched on first use."""
    pom = compose_pom("connect/jdbc")
    return install_once(
        cache_dir() / f"connect-jdbc-{hashlib.sha256(pom.read_bytes()).hexdigest()[:12]}",
        lambda folder: copy_dependencies("connect-jdbc", pom, folder / "jdbc", how=JDBC_HOW),
    )


def _install(version: str, folder: Path) -> None:
    source = _source()
    jars, plugins = folder / "jars", folder / "plugins" / "lab"
    options = [f"-Dconnect.version={version}", *logger_options(version)]
    copy_dependencies(NAME, compose_pom("connect"), jars, how=HOW, options=options)
    (compiler,) = jars.glob("ecj-*.jar")
    if not (jars / f"connect-runtime-{version}.jar").exists():
        raise MissingDependency(NAME, f"{HOW}; Maven fetched no version {version}")
    path = os.pathsep.join(str(jar) for jar in sorted(jars.glob("*.jar")))
    shutil.copytree(source / "META-INF", plugins / "META-INF")
    argv = [java(), "-jar", str(compiler), "-17", "-nowarn", "-cp", path, "-d", str(plugins)]
    run(NAME, [*argv, str(source)], how=HOW, timeout_s=300)
    compiler.unlink()
    for name, text in LOGGING.items():
        (folder / name).write_text(text)


def logging_option(folder: Path) -> str:
    """The JVM option that names the logger's configuration in a folder of `connect_folder`."""
    if list(folder.glob("jars/log4j-core-*.jar")):
        return f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}"
    return f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}"


def logger_options(version: str) -> list[str]:
    """Maven's option for the logger of a release: log4j 2 from 4.0 on."""
    return ["-Dlog4j2"] if int(version.partition(".")[0]) >= 4 else []
