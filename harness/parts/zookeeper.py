"""ZooKeeper: the jars that come inside the pyspark wheel, and only those that a server needs."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from urteil.harness.parts.classes import free_port, laying, server, shared_classes
from urteil.harness.parts.part import MissingPart, Part

HOW = "install the Python package pyspark (its jars contain ZooKeeper)"
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
JARS = (
    r"zookeeper-\d[\w.]*",
    r"zookeeper-jute-\d[\w.]*",
    r"slf4j-api-\d[\w.]*",
    r"log4j-slf4j2-impl-\d[\w.]*",
    r"log4j-api-\d[\w.]*",
    r"log4j-core-\d[\w.]*",
    r"netty-buffer-\d[\w.]*",
    r"netty-codec-\d[\w.]*",
    r"netty-common-\d[\w.]*",
    r"netty-handler-\d[\w.]*",
    r"netty-resolver-\d[\w.]*",
    r"netty-transport-\d[\w.]*",
    r"netty-transport-classes-epoll-\d[\w.]*",
    r"netty-transport-native-unix-common-\d[\w.]*",
    r"metrics-core-\d[\w.]*",
    r"snappy-java-\d[\w.]*",
    r"commons-io-\d[\w.]*",
    r"commons-cli-\d[\w.]*",
)


@cache
def zookeeper_classpath() -> str:
    """Class path that starts `MAIN`."""
    folder = _folder()
    names = sorted(path.name for path in folder.glob("*.jar")) if folder else []
    jars = []
    for pattern in JARS:
        matches = [name for name in names if re.fullmatch(pattern + r"\.jar", name)]
        if not matches:
            raise MissingPart("zookeeper", f"{HOW}; no jar matches {pattern}")
        jars += [str(folder / name) for name in matches if folder]
    return ":".join(jars)


def zookeeper_classes() -> list[str]:
    """Options of a JVM that starts ZooKeeper sooner; none where there can be none."""
    return shared_classes(Path(zookeeper_classpath().split(":")[0]).parent / "zookeeper", _lay)


def _lay(folder: Path) -> None:
    with short_zookeeper([laying(folder)]):
        pass


@contextmanager
def short_zookeeper(options: Sequence[str] = ()) -> Iterator[int]:
    """The port of a server for the block alone."""
    port = free_port()
    settings = {
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
    }
    argv = [*options, "-cp", zookeeper_classpath(), MAIN]
    with server(argv, settings, "dataDir", port):
        yield port


def zookeeper_part() -> Part:
    try:
        jar = Path(zookeeper_classpath().split(":")[0])
    except MissingPart as error:
        return Part(name="zookeeper", found=False, version="", where="", how=error.how)
    version = jar.stem.removeprefix("zookeeper-")
    return Part(name="zookeeper", found=True, version=version, where=str(jar.parent), how=HOW)


def _folder() -> Path | None:
    """pyspark's jars, found without importing pyspark (which takes long)."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "jars"
