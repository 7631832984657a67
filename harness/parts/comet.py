"""Apache DataFusion Comet from Maven Central: Spark's operators as native code."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

from urteil.harness.parts.maven import maven
from urteil.harness.parts.part import MissingPart, Part, cache_dir, installed, run

NAME = "comet"
VERSION, SPARK = "1.2.0", "4.1"
HOW = (
    "it comes from Maven Central (100 MB) when Spark is first given a large run: install Maven, "
    "for example with `apt-get install maven`; without it Spark judges the same, more slowly"
)
_JAR = f"comet-spark-spark{SPARK}_2.13"


def comet_jar() -> Path:
    """The jar, fetched if it is not there yet. MissingPart where it does not fit: it has native
    code for Linux, on x86-64 and aarch64, and is built for one minor version of Spark."""
    if not _fits():
        raise MissingPart(NAME, f"it is for Spark {SPARK} on Linux, x86-64 or aarch64")
    return installed(_target(), _fetch) / f"{_JAR}-{VERSION}.jar"


def comet_part() -> Part:
    """One line of `urteil doctor`."""
    found = _target().exists()
    return Part(
        name=NAME,
        found=found,
        version=VERSION if found else "",
        where=str(_target()) if found else "",
        how=HOW,
        required=False,
    )


def _fits() -> bool:
    here = platform.system() == "Linux" and platform.machine() in ("x86_64", "aarch64")
    return here and version("pyspark").startswith(f"{SPARK}.")


def _target() -> Path:
    return cache_dir() / f"comet-{VERSION}-spark{SPARK}"


def _fetch(folder: Path) -> None:
    artifact = f"org.apache.datafusion:{_JAR}:{VERSION}"
    argv = [maven(HOW), "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"]
    argv += [f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    run(NAME, argv, how=HOW, timeout_s=600)
