"""Apache Maven, which fetches the jars of a pom from Maven Central."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import urteil
from urteil.harness.parts.java import java
from urteil.harness.parts.part import MissingPart, apt_install, can_apt, run

TIMEOUT_S = 900


def maven(how: str) -> str:
    """Path of `mvn`, installed on Debian as root; `how` is the mend that MissingPart names."""
    found = shutil.which("mvn")
    if found is None and can_apt():
        java()
        apt_install("maven", "maven", how=how)
        found = shutil.which("mvn")
    if found is None:
        raise MissingPart("maven", how)
    return found


def copy_dependencies(
    name: str, pom: Path, folder: Path, *, how: str, options: Sequence[str] = ()
) -> None:
    """Copy the jars that `pom` names, and those they need, into `folder`; MissingPart of `name`."""
    goal = ["-q", "-B", "-f", str(pom), *options, "dependency:copy-dependencies"]
    run(name, [maven(how), *goal, f"-DoutputDirectory={folder}"], how=how, timeout_s=TIMEOUT_S)


def compose_pom(name: str) -> Path:
    """`compose/NAME/pom.xml`, as it is installed with the package."""
    return Path(urteil.__file__).parent / "compose" / name / "pom.xml"
