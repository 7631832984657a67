"""Small Java programs that put questions to Apache Kafka's own classes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tests.clients.tools import compile_java, java_folder
from urteil.harness.dependencies.installation import cache_dir, install_once
from urteil.harness.dependencies.java import QUICK_START, java
from urteil.harness.dependencies.kafka import kafka_classpath

PROGRAMS = Path(__file__).parent / "programs"


def probe(name: str) -> list[str]:
    """The command that runs a program, compiled once a machine."""
    classpath, source = kafka_classpath(), PROGRAMS / f"{name}.java"

    def compile_it(folder: Path) -> None:
        compile_java(source, java_folder("java", "3.9.1"), folder, libraries=Path(classpath).parent)

    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    folder = install_once(cache_dir() / f"{name}-{digest}", compile_it)
    return [java(), *QUICK_START, "-cp", f"{classpath}{os.pathsep}{folder}", name]
