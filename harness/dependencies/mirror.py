"""MirrorMaker 2 of Apache Kafka, from Maven Central, and the lab's seeded bugs of it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from urteil.harness.dependencies.installation import (
    MissingDependency,
    cache_dir,
    install_once,
    run,
)
from urteil.harness.dependencies.java import java
from urteil.harness.dependencies.maven import compose_pom, copy_dependencies

VERSION = "3.9.1"
COMPILATION_S = 300
HOW = (
    "it comes from Maven Central by compose/mirror/pom.xml: install Maven, for example with "
    "`apt-get install maven`; only scenarios with MirrorMaker need it"
)
LOGGING = """log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=%d{ISO8601} %p %c{1} %m%n
log4j.logger.org.apache.kafka.clients=WARN
log4j.logger.org.apache.kafka.common=WARN
log4j.logger.org.apache.kafka.connect.runtime.isolation=ERROR
log4j.logger.org.reflections=ERROR
log4j.logger.org.eclipse.jetty=WARN
"""


def mirror_folder(version: str = VERSION) -> Path:
    """The folder with MirrorMaker's jars in `jars`, the seeded bugs of compose/mirror/src in
    `bugs`, and `log4j.properties`. Fetched and compiled on first use."""
    pom = compose_pom("mirror")
    sources = sorted(path for path in pom.with_name("src").rglob("*.java"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in (pom, *sources)))
    target = cache_dir() / f"mirror-{version}-{digest.hexdigest()[:12]}"
    return install_once(target, lambda folder: _install(version, pom, sources, folder))


def _install(version: str, pom: Path, sources: list[Path], folder: Path) -> None:
    jars = folder / "jars"
    options = [f"-Dmirror.version={version}"]
    copy_dependencies("mirror", pom, jars, how=HOW, options=options)
    if not (jars / f"connect-mirror-{version}.jar").exists():
        raise MissingDependency("mirror", f"{HOW}; Maven fetched no connect-mirror-{version}.jar")
    (compiler,) = jars.glob("ecj-*.jar")
    path = os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))
    argv = [
        java(),
        "-jar",
        str(compiler),
        "-17",
        "-nowarn",
        "-cp",
        path,
        "-d",
        str(folder / "bugs"),
    ]
    run("mirror", [*argv, *map(str, sources)], how=HOW, timeout_s=COMPILATION_S)
    compiler.unlink()
    (folder / "log4j.properties").write_text(LOGGING)
