"""MirrorMaker 2 of Apache Kafka, from Maven Central, and the lab's seeded bugs of it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from urteil.harness.dependencies.connect import LOGGING, logger_options
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

NAME = "mirror-maker"
VERSION = "3.9.1"
COMPILATION_S = 300
HOW = (
    "it comes from Maven Central by compose/mirror/pom.xml: install Maven, for example with "
    "`apt-get install maven`; only scenarios with MirrorMaker need it"
)


def mirror_folder(version: str = VERSION) -> Path:
    """The folder with MirrorMaker's jars in `jars`, the seeded bugs of compose/mirror/src in
    `bugs`, and the configurations of its loggers. Fetched and compiled on first use.
    MissingDependency names a version that Maven Central lacks."""
    return install_once(_target(version), lambda folder: _install(version, folder))


def describe_mirror() -> Dependency:
    """One line of `urteil doctor`."""
    return describe_folders(NAME, VERSION, _target(VERSION), how=HOW)


def _sources() -> list[Path]:
    return sorted(compose_pom("mirror").with_name("src").rglob("*.java"))


def _target(version: str) -> Path:
    contents = [path.read_bytes() for path in (compose_pom("mirror"), *_sources())]
    digest = hashlib.sha256(b"".join([*contents, repr(LOGGING).encode()]))
    return cache_dir() / f"mirror-{version}-{digest.hexdigest()[:12]}"


def _install(version: str, folder: Path) -> None:
    jars = folder / "jars"
    options = [f"-Dmirror.version={version}", *logger_options(version)]
    copy_dependencies(NAME, compose_pom("mirror"), jars, how=HOW, options=options)
    if not (jars / f"connect-mirror-{version}.jar").exists():
        raise MissingDependency(NAME, f"{HOW}; Maven fetched no connect-mirror-{version}.jar")
    (compiler,) = jars.glob("ecj-*.jar")
    path = os.pathsep.join(map(str, sorted(jars.glob("*.jar"))))
    argv = [java(), "-jar", str(compiler), "-17", "-nowarn", "-cp", path]
    argv += ["-d", str(folder / "bugs"), *map(str, _sources())]
    run(NAME, argv, how=HOW, timeout_s=COMPILATION_S)
    compiler.unlink()
    for name, text in LOGGING.items():
        (folder / name).write_text(text)
