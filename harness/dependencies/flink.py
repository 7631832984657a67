"""Apache Flink: its jars from PyPI's `apache-flink-libraries`, its Kafka connector from Maven
Central. No Python package is installed: the wheel is unpacked into the cache."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import zipfile
from pathlib import Path

from urteil.harness.dependencies.installation import (
    Dependency,
    cache_dir,
    describe_folders,
    install_once,
    run,
)
from urteil.harness.dependencies.maven import copy_artifact

NAME = "flink"
VERSION, CONNECTOR = "2.2.1", "5.0.0-2.2"
HOW = (
    "it comes from PyPI (`apache-flink-libraries`, 313 MB) and Maven Central (11 MB) when a "
    "scenario with Flink first runs: install Maven, for example with `apt-get install maven`"
)
DOWNLOAD_S = 1_200


def flink_classpath() -> str:
    """Class path of Flink, its SQL client and its Kafka connector, fetched on first use. The client
    loads classes of flink-python and of the SQL gateway, too."""
    folder = install_once(_target(), _fetch)
    return ":".join(f"{folder / part}/*" for part in ("lib", "opt", "maven"))


def describe_flink() -> Dependency:
    """One line of `urteil doctor`."""
    return describe_folders(NAME, f"{VERSION}, connector {CONNECTOR}", _target(), how=HOW)


def _target() -> Path:
    return cache_dir() / f"flink-{VERSION}-{CONNECTOR}"


def _fetch(folder: Path) -> None:
    wheel = download_wheel(NAME, f"apache-flink-libraries=={VERSION}", folder / "wheel", how=HOW)
    with zipfile.ZipFile(wheel) as archive:
        prefixes = ("pyflink/lib/", "pyflink/opt/")
        archive.extractall(
            folder, [name for name in archive.namelist() if name.startswith(prefixes)]
        )
    for part in ("lib", "opt"):
        (folder / "pyflink" / part).rename(folder / part)
    shutil.rmtree(folder / "wheel")
    shutil.rmtree(folder / "pyflink")
    for artifact in (f"flink-sql-gateway:{VERSION}", f"flink-sql-connector-kafka:{CONNECTOR}"):
        copy_artifact(NAME, f"org.apache.flink:{artifact}", folder / "maven", how=HOW)


def download_wheel(name: str, requirement: str, folder: Path, *, how: str) -> Path:
    """The wheel of one package, without its dependencies, in `folder`."""
    has_pip = importlib.util.find_spec("pip") is not None
    pip = [sys.executable, "-m", "pip"] if has_pip else [shutil.which("pip") or "pip"]
    argv = [*pip, "download", "-q", "--no-deps", "--only-binary=:all:"]
    run(name, [*argv, "-d", str(folder), requirement], how=how, timeout_s=DOWNLOAD_S)
    return next(folder.glob("*.whl"))
