"""ZooKeeper: of the jars inside the pyspark wheel those that a server needs; where PySpark is not
installed, the same versions from Maven Central."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
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
from urteil.harness.dependencies.maven import compose_pom, copy_dependencies
from urteil.harness.dependencies.pyspark import pyspark_folder

VERSION = "3.9.4"
HOW = (
    "install the Python package pyspark, whose jars contain it (`pip install urteil[spark]`), or "
    "Maven, which fetches it by compose/zookeeper/pom.xml, for example with `apt-get install maven`"
)
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
    """Class path that starts `MAIN`; its jars are fetched if they are not there yet."""
    folder = _in_pyspark() or install_once(_target(), _fetch)
    names = sorted(path.name for path in folder.glob("*.jar"))
    jars = []
    for pattern in JARS:
        matches = [name for name in names if re.fullmatch(pattern + r"\.jar", name)]
        if not matches:
            raise MissingDependency("zookeeper", f"{HOW}; no jar matches {pattern}")
        jars += [str(folder / name) for name in matches]
    return ":".join(jars)


def zookeeper_classes() -> list[str]:
    """Options of a JVM that starts ZooKeeper sooner; none where there can be none."""
    return shared_classes(Path(zookeeper_classpath().split(":")[0]).parent / "zookeeper", _lay)


def _lay(folder: Path) -> None:
    write_zookeeper_archive(folder, zookeeper_classpath())


def write_zookeeper_archive(folder: Path, classpath: str, cwd: Path | None = None) -> None:
    """Archive the classes of a server with this class path, which `cwd` may begin."""
    with short_zookeeper([archive_option(folder)], classpath, cwd):
        pass


@contextmanager
def short_zookeeper(
    options: Sequence[str] = (), classpath: str = "", cwd: Path | None = None
) -> Iterator[int]:
    """The port of a server for the block alone."""
    port = free_port()
    settings = {
        "clientPort": port,
        "clientPortAddress": "127.0.0.1",
        "admin.enableServer": "false",
    }
    argv = [*options, "-cp", classpath or zookeeper_classpath(), MAIN]
    with temporary_server(argv, settings, "dataDir", port, cwd=cwd):
        yield port


def describe_zookeeper() -> Dependency:
    folder = _in_pyspark() or _target()
    jar = next(folder.glob("zookeeper-[0-9]*.jar"), None)
    version = jar.stem.removeprefix("zookeeper-") if jar else ""
    where = str(folder) if jar else ""
    return Dependency(
        name="zookeeper", found=jar is not None, version=version, where=where, how=HOW
    )


def _target() -> Path:
    return cache_dir() / f"zookeeper-{VERSION}"


def _fetch(folder: Path) -> None:
    copy_dependencies("zookeeper", compose_pom("zookeeper"), folder, how=HOW)


def _in_pyspark() -> Path | None:
    folder = pyspark_folder()
    return folder / "jars" if folder else None
