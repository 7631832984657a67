"""Apache Maven, which fetches the jars of a pom from Maven Central."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import urteil
from urteil.harness.dependencies.installation import MissingDependency, apt_install, can_apt, run
from urteil.harness.dependencies.java import java

TIMEOUT_S = 900
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


def maven(how: str) -> str:
    """Path of `mvn`, which root on Debian installs; MissingDependency names the remedy `how`."""
    path = shutil.which("mvn")
    if path is None and can_apt():
        java()
        apt_install("maven", "maven", how=how)
        path = shutil.which("mvn")
    if path is None:
        raise MissingDependency("maven", how)
    return path


def copy_dependencies(
    name: str, pom: Path, folder: Path, *, how: str, options: Sequence[str] = ()
) -> None:
    """Copy the jars of `pom`, with their dependencies, into `folder`.

    Raises MissingDependency with `name`.
    """
    goal = ["-q", "-B", "-f", str(pom), *options, "dependency:copy-dependencies"]
    run(name, [maven(how), *goal, f"-DoutputDirectory={folder}"], how=how, timeout_s=TIMEOUT_S)


def copy_artifact(name: str, artifact: str, folder: Path, *, how: str) -> None:
    """Copy one artifact, `group:artifact:version[:packaging[:classifier]]`, without its
    dependencies, into `folder`. Raises MissingDependency with `name`."""
    argv = [maven(how), "-q", "-B", COPY_GOAL]
    argv += [f"-Dartifact={artifact}", f"-DoutputDirectory={folder}"]
    run(name, argv, how=how, timeout_s=TIMEOUT_S)


def compose_pom(name: str) -> Path:
    """`compose/NAME/pom.xml`, as installed with the package."""
    return Path(urteil.__file__).parent / "compose" / name / "pom.xml"
