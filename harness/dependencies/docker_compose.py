"""Docker Compose v2 for `compose/compose.yaml`: docker's own plugin, or built once a machine."""

from __future__ import annotations

import subprocess
from pathlib import Path

from urteil.harness.dependencies.go import go_install
from urteil.harness.dependencies.installation import Dependency, cache_dir, install_once

VERSION = "2.29.7"
MODULE = "github.com/docker/compose/v2"
PROGRAM = "docker-compose"
HOW = "`urteil doctor --install --compose` builds it; or install docker's plugin of that name"


def docker_compose() -> list[str]:
    """The command `docker compose`, or an equivalent program, built if it is missing."""
    if _version(["docker", "compose"]):
        return ["docker", "compose"]
    return [str(install_once(_target(), _build) / PROGRAM)]


def describe_compose() -> Dependency:
    for command in (["docker", "compose"], [str(_target() / PROGRAM)]):
        if version := _version(command):
            where = " ".join(command)
            return _dependency(found=True, version=version, where=where)
    return _dependency(found=False)


def _dependency(*, found: bool, version: str = "", where: str = "") -> Dependency:
    return Dependency(
        name="docker-compose", found=found, version=version, where=where, how=HOW, required=False
    )


def _target() -> Path:
    return cache_dir() / f"docker-compose-{VERSION}"


def _build(folder: Path) -> None:
    flags = f"-X {MODULE}/internal.Version={VERSION}"
    package = f"{MODULE}/cmd@v{VERSION}"
    go_install("docker-compose", package, folder / PROGRAM, how=HOW, ldflags=flags)


def _version(command: list[str]) -> str:
    try:
        process = subprocess.run(
            [*command, "version", "--short"], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip() if process.returncode == 0 else ""
