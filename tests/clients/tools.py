"""The clients' programs, compiled once a machine, each as the beginning of a command line."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

import pyspark

from urteil.harness.dependencies.go import build
from urteil.harness.dependencies.installation import (
    MissingDependency,
    apt_install,
    cache_dir,
    can_apt,
    install_once,
    run,
)
from urteil.harness.dependencies.java import java
from urteil.harness.dependencies.maven import copy_dependencies

PROGRAMS = Path(__file__).parent / "programs"
KAFKAJS = "kafkajs@2.2.4"
JAVA = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
COMPILER = "the libraries and a compiler come from Maven Central"


def python(name: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / f"with_{name}.py")]


def recipe(name: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / f"recipe_with_{name}.py")]


def kcat() -> list[str]:
    return [*python("kcat"), _program("kcat", "kcat")]


def kafkajs() -> list[str]:
    """Installed in a folder whose node_modules its program finds."""
    node, npm = _program("node", "nodejs"), _program("npm", "npm")
    how = f"{KAFKAJS} comes from the npm registry"

    def install(folder: Path) -> None:
        argv = [npm, "install", "--prefix", str(folder), "--silent", "--no-audit", "--no-fund"]
        run("kafkajs", [*argv, KAFKAJS], how=how, timeout_s=300)
        shutil.copy(PROGRAMS / "node" / "program.js", folder)

    folder = install_once(_target("kafkajs", PROGRAMS / "node"), install)
    return [node, str(folder / "program.js")]


def in_go(name: str) -> list[str]:
    """`franz`, `sarama` or `kafkago`."""

    def compile_all(folder: Path) -> None:
        build("clients", PROGRAMS / "go", folder, how="modules come from the Go module proxy")

    return [str(install_once(_target("go", PROGRAMS / "go"), compile_all) / name)]


def in_java(version: str, program: str = "Program") -> list[str]:
    """With the client of that version of Apache Kafka."""
    return _java("java", version, program)


def in_old_java() -> list[str]:
    """With the first client that Apache Kafka wrote in Java for both directions."""
    return _java("old", "0.9.0.1")


def streams() -> list[str]:
    """With Kafka Streams."""
    return _java("streams", "3.9.1")


def _java(name: str, version: str, program: str = "Program") -> list[str]:
    folder = java_folder(name, version)
    return [java(), *JAVA, "-cp", f"{folder}/*{os.pathsep}{folder}", program]


def java_folder(name: str, version: str) -> Path:
    """The programs in Java of a folder with that version of Apache Kafka's jars, and the compiler
    they came from."""
    source = PROGRAMS / name

    def compile_it(folder: Path) -> None:
        _fetch(source, folder, f"-Dkafka.version={version}", COMPILER)
        for program in sorted(source.glob("*.java")):
            compile_java(program, folder, folder)

    return install_once(_target(f"{name}-{version}", source), compile_it)


def compile_java(source: Path, jars: Path, into: Path, libraries: Path | None = None) -> None:
    """By Eclipse's compiler, which is one of the jars; against these, or other `libraries`."""
    (compiler,) = jars.glob("ecj-*.jar")
    path = os.pathsep.join(str(jar) for jar in sorted((libraries or jars).glob("*.jar")))
    argv = [java(), "-jar", str(compiler), "-17", "-nowarn", "-cp", path, "-d", str(into)]
    run(source.stem, [*argv, str(source)], how=COMPILER, timeout_s=300)


def spark() -> list[str]:
    """PySpark with its source and sink for Kafka."""
    source, version = PROGRAMS / "spark", f"-Dspark.version={pyspark.__version__}"

    def fetch(folder: Path) -> None:
        _fetch(source, folder, version, "Spark's source and sink come from Maven Central")

    folder = install_once(_target(f"spark-{pyspark.__version__}", source), fetch)
    return [*python("spark"), str(folder)]


def _fetch(source: Path, folder: Path, version: str, how: str) -> None:
    """The jars of a pom."""
    copy_dependencies("jars", source / "pom.xml", folder, how=how, options=[version])


def _target(name: str, source: Path) -> Path:
    """Named after what it is made of, so that a changed source is compiled anew."""
    digest = hashlib.sha256()
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return cache_dir() / f"client-{name}-{digest.hexdigest()[:12]}"


def _program(name: str, package: str) -> str:
    how = f"install it, for example with `apt-get install {package}`"
    if shutil.which(name) is None and can_apt():
        apt_install(name, package, how=how)
    path = shutil.which(name)
    if path is None:
        raise MissingDependency(name, how)
    return path
