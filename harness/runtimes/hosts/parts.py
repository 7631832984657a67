"""The files that a host needs to run nodes, as archives that are sent once.

A part is named by its content, so a host has it or lacks it. Each machine makes an archive once,
with a hash by which the host checks what arrived.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import metadata
from pathlib import Path

import urteil
from urteil.harness.dependencies.class_data_sharing import ARCHIVE as CLASSES
from urteil.harness.dependencies.faketime import faketime_library
from urteil.harness.dependencies.installation import cache_dir, install_once
from urteil.harness.dependencies.java import describe_java, java
from urteil.harness.dependencies.kafka import kafka_classpath, write_kafka_archive
from urteil.harness.dependencies.toxiproxy import MACHINES, source_digest, toxiproxy_for_linux
from urteil.harness.dependencies.zookeeper import write_zookeeper_archive, zookeeper_classpath

ARCHIVE, HASH = "part.tar.gz", "part.sha256"
PARTS = "../../parts"
"""The relative path from the folder of a node to the parts, the same on every host."""
QUICK = 1
UNPACK_S = 300.0
BROKER_PACKAGES = Path(urteil.__file__).parent / "compose" / "broker" / "requirements.txt"
AGENT_PACKAGES = ("msgspec", "psutil")
CLIENT_PACKAGES = (
    "aiokafka",
    "async-timeout",
    "confluent-kafka",
    "cramjam",
    "kafka-python",
    "lz4",
    "packaging",
    "python-snappy",
    "typing_extensions",
    "zstandard",
)
"""Packages of the workload's clients, in addition to those of the broker."""
LEFT_OUT = {"__pycache__", "tests", "include", "compose"}
Files = Iterator[tuple[str, Path]]
"""The names in a part, each with the file of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A folder on hosts. `name` is its name there, `jars` is a class path."""

    name: str
    archive: Path
    sha256: str
    jars: tuple[str, ...] = ()

    @property
    def classpath(self) -> str:
        """The class path for the folder of a node. The order is fixed, because an archive of
        classes requires it."""
        return ":".join(f"{PARTS}/{self.name}/{jar}" for jar in self.jars)


@cache
def lab_part() -> Part:
    """The lab's own source: the agent, the broker and its mutants."""
    files = dict(_source())
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return _part(f"urteil-{digest.hexdigest()[:16]}", lambda: iter(files.items()))


@cache
def packages_part() -> Part:
    """The Python packages of the broker and of the agent, for this Python."""
    return _part_of_packages("packages", _packages())


@cache
def clients_part() -> Part:
    """The Python packages of the workload's clients, for this Python."""
    return _part_of_packages("clients", [*CLIENT_PACKAGES])


def _part_of_packages(name: str, packages: list[str]) -> Part:
    versions = "\n".join(f"{package}=={metadata.version(package)}" for package in packages)
    digest = hashlib.sha256(f"{sys.version_info[:2]}\n{versions}".encode()).hexdigest()[:16]
    return _part(f"{name}-{digest}", lambda: _package_files(packages))


@cache
def zookeeper_part() -> Part:
    jars = [Path(jar) for jar in zookeeper_classpath().split(":")]
    version = next(jar.stem for jar in jars if jar.stem.startswith("zookeeper-3"))
    return _part_of_jars(version, jars)


@cache
def zookeeper_classes_part() -> Part:
    """The classes of `zookeeper_part`, archived for a faster start."""
    return _part_of_classes(zookeeper_part(), write_zookeeper_archive)


@cache
def kafka_part(version: str) -> Part:
    folder = Path(kafka_classpath(version)).parent
    return _part_of_jars(f"kafka-{version}", sorted(folder.glob("*.jar")))


@cache
def kafka_classes_part(version: str) -> Part:
    """The classes of `kafka_part`, archived for a faster start."""
    return _part_of_classes(kafka_part(version), partial(write_kafka_archive, version=version))


def _part_of_jars(name: str, jars: Sequence[Path]) -> Part:
    part = _part(name, lambda: ((jar.name, jar) for jar in jars))
    return replace(part, jars=tuple(jar.name for jar in jars))


def _part_of_classes(jars: Part, lay: Callable[..., None]) -> Part:
    """The archive that the lab's Java makes, with the paths of the folder of a node on a host. A
    JVM of another version ignores it. The part is empty if none can be made."""

    def files() -> Files:
        with tempfile.TemporaryDirectory() as place:
            node = Path(place) / "nodes" / "node"
            folder = Path(place) / "parts" / jars.name
            node.mkdir(parents=True)
            folder.mkdir(parents=True)
            subprocess.run(
                ["tar", "-xzf", jars.archive, "-C", folder], check=True, timeout=UNPACK_S
            )
            with contextlib.suppress(OSError):
                lay(node, classpath=jars.classpath, cwd=node)
                yield CLASSES, node / CLASSES

    return _part(f"{jars.name}-classes-{describe_java().version}", files)


@cache
def faketime_part() -> Part:
    """libfaketime of this machine. Hosts are of the same kind."""
    library = faketime_library()
    digest = hashlib.sha256(library.read_bytes()).hexdigest()[:16]
    return _part(f"faketime-{digest}", lambda: iter([(library.name, library)]))


@cache
def java_part() -> Part:
    """The Java of this machine, for a host of the same kind without one."""
    home = Path(java()).resolve().parent.parent
    version = describe_java().version

    def files() -> Files:
        for folder, _, names in os.walk(home, followlinks=True):
            for path in (Path(folder) / name for name in names):
                if path.is_file():  # Debian's packages have links to files of other packages
                    yield str(path.relative_to(home)), path

    return _part(f"java-{version}-{platform.machine()}", files)


@cache
def toxiproxy_part(machine: str) -> Part:
    """The server for a kind of machine, as `uname -m` names it."""
    architecture = MACHINES[machine]
    program = toxiproxy_for_linux(architecture)
    name = f"toxiproxy-{source_digest()}-{architecture}"
    return _part(name, lambda: iter([(program.name, program)]))


def _part(name: str, files: Callable[[], Files]) -> Part:
    folder = install_once(cache_dir() / "host-parts" / name, partial(_write, files))
    return Part(name=name, archive=folder / ARCHIVE, sha256=(folder / HASH).read_text())


def _write(files: Callable[[], Files], folder: Path) -> None:
    with tarfile.open(folder / ARCHIVE, "w:gz", compresslevel=QUICK, dereference=True) as tar:
        for name, path in files():
            tar.add(path, arcname=name)
    with (folder / ARCHIVE).open("rb") as archive:
        (folder / HASH).write_text(hashlib.file_digest(archive, "sha256").hexdigest())


def _source() -> Files:
    """The Python files and tables of the lab, and its version as `importlib.metadata` reads it."""
    package = Path(urteil.__file__).parent
    for room in (package, *(path for path in package.iterdir() if path.is_dir())):
        if room.name in LEFT_OUT:
            continue
        folder = room if room == package else room.resolve()
        for path in folder.glob("*") if room == package else folder.rglob("*"):
            inside = path.relative_to(folder)
            if path.is_file() and not LEFT_OUT & set(inside.parts):
                below = "" if room == package else f"{room.name}/"
                yield f"urteil/{below}{inside}", path
    distribution = metadata.distribution("urteil")
    for file in distribution.files or ():
        if file.name == "METADATA":
            yield str(file), Path(str(distribution.locate_file(file)))


def _packages() -> list[str]:
    lines = BROKER_PACKAGES.read_text().splitlines()
    pinned = [line.partition("==")[0] for line in lines if "==" in line]
    return [*pinned, *AGENT_PACKAGES]


def _package_files(packages: list[str]) -> Files:
    for name in packages:
        distribution = metadata.distribution(name)
        for file in distribution.files or ():
            path = Path(str(distribution.locate_file(file)))
            if ".." not in file.parts and not LEFT_OUT & set(file.parts) and path.is_file():
                yield str(file), path
