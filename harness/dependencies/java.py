"""Java, which ZooKeeper and Apache Kafka run on."""

from __future__ import annotations

import locale
import os
import re
import shutil
import subprocess
from pathlib import Path

from urteil.harness.dependencies.installation import (
    Dependency,
    MissingDependency,
    apt_install,
    can_apt,
)

LOWEST = 17
QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options for a short-lived JVM beside many others."""
PACKAGE = "openjdk-17-jre-headless"
HOW = (
    f"install Java {LOWEST} or newer, for example with `apt-get install {PACKAGE}` "
    "or `brew install openjdk@17`, and put it on PATH or set JAVA_HOME"
)


def java() -> str:
    """Path of a `java` of version 17 or newer. Root on Debian installs one."""
    path_and_version = _find()
    if path_and_version is None and can_apt():
        apt_install("java", PACKAGE, how=HOW)
        path_and_version = _find()
    if path_and_version is None:
        raise MissingDependency("java", HOW)
    return path_and_version[0]


def utf8_locale() -> dict[str, str]:
    """Environment for a JVM: a UTF-8 locale where this process has another one.

    A JVM decodes file names by its locale: under `LC_ALL=C` it finds no path with other letters
    than ASCII. C.UTF-8 is part of glibc from 2.35 on, and of earlier ones in Debian.
    """
    encoding = locale.getencoding().upper().replace("-", "")
    return {} if encoding == "UTF8" else {"LC_ALL": "C.UTF-8"}


def describe_java() -> Dependency:
    path_and_version = _find()
    path, version = path_and_version if path_and_version else ("", "")
    return Dependency(
        name="java", found=bool(path_and_version), version=version, where=path, how=HOW
    )


def _find() -> tuple[str, str] | None:
    homes = [os.environ.get("JAVA_HOME"), "/opt/homebrew/opt/openjdk@17", "/usr/local/opt/openjdk"]
    candidates = [str(Path(home) / "bin" / "java") for home in homes if home]
    on_path = shutil.which("java")
    for path in [*candidates[:1], on_path, *candidates[1:]]:
        version = _version(path) if path else None
        if path and version and int(version.split(".")[0]) >= LOWEST:
            return path, version
    return None


def _version(path: str) -> str | None:
    """The version from the installation's files, otherwise from `java -version`."""
    release = Path(path).resolve().parent.parent / "release"
    try:
        text = release.read_text(errors="replace")
    except OSError:
        try:
            process = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            return None
        text = process.stderr + process.stdout
    match = re.search(r'(?:JAVA_VERSION=|version )"(\d+[\d.]*)', text)
    return match.group(1) if match else None
