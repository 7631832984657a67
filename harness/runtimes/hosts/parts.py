"""What a host needs to run nodes, as archives that are sent once.

A part is named after its content: the host has it or lacks it. An archive is made once a machine
and has a hash of its own, by which the host checks what arrived.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from pathlib import Path

import urteil
from urteil.harness.dependencies.faketime import faketime_library
from urteil.harness.dependencies.installation import cache_dir, install_once
from urteil.harness.dependencies.java import describe_java, java
from urteil.harness.dependencies.kafka import kafka_classpath
from urteil.harness.dependencies.toxiproxy import MACHINES, source_digest, toxiproxy_for_linux
from urteil.harness.dependencies.zookeeper import zookeeper_classpath

ARCHIVE, HASH = "part.tar.gz", "part.sha256"
QUICK = 1
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
"""What the workload's clients import, besides the packages of the broker."""
LEFT_OUT = {"__pycache__", "tests", "include", "compose"}
Files = Iterator[tuple[str, Path]]
"""The names in a part, each with the file of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A folder that hosts get. `name` is its name there."""

    name: str
    archive: Path
    sha256: str


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
    return _part(version, lambda: ((jar.name, jar) for jar in jars))


@cache
def kafka_part(version: str) -> Part:
    folder = Path(kafka_classpath(version)).parent
    return _part(f"kafka-{version}", lambda: ((jar.name, jar) for jar in folder.glob("*.jar")))


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
        found = room.glob("*") if room == package else room.resolve().rglob("*")
        for path in found:
            inside = path.relative_to(package if room == package else room.resolve())
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
