"""Apache DataFusion Comet from Maven Central: Spark's operators as native code."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

from urteil.harness.dependencies.installation import (
    Dependency,
    MissingDependency,
    cache_dir,
    install_once,
)
from urteil.harness.dependencies.maven import copy_artifact

NAME = "comet"
VERSION, SPARK = "1.2.0", "4.1"
HOW = (
    "it comes from Maven Central (100 MB) when Spark is first given a large run: install Maven, "
    "for example with `apt-get install maven`; without it Spark judges the same, more slowly"
)
_JAR = f"comet-spark-spark{SPARK}_2.13"


def comet_jar() -> Path:
    """Path of the jar, which is fetched on first use.

    Raises MissingDependency on other systems than Linux on x86-64 or aarch64, and for another minor
    version of Spark than the one that the jar was built for.
    """
    if not _supports_host():
        raise MissingDependency(NAME, f"it is for Spark {SPARK} on Linux, x86-64 or aarch64")
    return install_once(_target(), _fetch) / f"{_JAR}-{VERSION}.jar"


def describe_comet() -> Dependency:
    """One line of `urteil doctor`."""
    is_installed = _target().exists()
    return Dependency(
        name=NAME,
        found=is_installed,
        version=VERSION if is_installed else "",
        where=str(_target()) if is_installed else "",
        how=HOW,
        required=False,
    )


def _supports_host() -> bool:
    is_supported = platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64")
    return is_supported and version("pyspark").startswith(f"{SPARK}.")


def _target() -> Path:
    return cache_dir() / f"comet-{VERSION}-spark{SPARK}"


def _fetch(folder: Path) -> None:
    artifact = f"org.apache.datafusion:{_JAR}:{VERSION}"
    copy_artifact(NAME, artifact, folder, how=HOW)
