"""The programs of a run on its hosts: paths that are the same on every host."""

from __future__ import annotations

from collections.abc import Callable

from urteil.harness.dependencies.class_data_sharing import ARCHIVE, use_archive
from urteil.harness.runtimes.hosts.parts import (
    PARTS,
    Part,
    kafka_classes_part,
    kafka_part,
    zookeeper_classes_part,
    zookeeper_part,
)

BIN = "../../bin"
"""The relative path from the folder of a node to programs."""


class HostPrograms:
    """Implements `Programs`. `send` sends a part to the hosts that lack it."""

    def __init__(self, send: Callable[[Part], None]) -> None:
        self._send = send

    def python(self) -> str:
        return f"{BIN}/python"

    def java(self) -> str:
        return f"{BIN}/java"

    def toxiproxy(self) -> str:
        return f"{BIN}/toxiproxy-server"

    def zookeeper_classpath(self) -> str:
        return self._classpath(zookeeper_part())

    def kafka_classpath(self, version: str) -> str:
        return self._classpath(kafka_part(version))

    def zookeeper_classes(self) -> list[str]:
        return self._classes(zookeeper_classes_part())

    def kafka_classes(self, version: str) -> list[str]:
        return self._classes(kafka_classes_part(version))

    def _classpath(self, part: Part) -> str:
        self._send(part)
        return part.classpath

    def _classes(self, part: Part) -> list[str]:
        self._send(part)
        return use_archive(f"{PARTS}/{part.name}/{ARCHIVE}")
